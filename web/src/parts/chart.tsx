/** Lines over time on a canvas, and the same numbers as a table. */
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import { moment, zone } from "../format";
import { theme } from "../theme";

export interface Line {
  label: string;
  values: readonly (number | null)[];
  dash?: boolean;
}

/** The time of day, with seconds only where the ticks are that near. */
function clock(at: number, _index: number, ticks: number[]): string {
  const near = (ticks[1] ?? at + 60) - ticks[0]! < 60;
  const zoned = zone.value === "UTC" ? { timeZone: "UTC" } : {};
  return new Date(at * 1e3).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(near ? { second: "2-digit" } : {}), ...zoned });
}

interface Props {
  title: string;
  times: readonly number[];
  lines: Line[];
  unit: string;
  form: (value: number | null) => string;
  height?: number;
}

/** What a colour of the style sheet is now: a canvas does not follow the scheme by itself. */
function ink(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

export function Chart({ title, times, lines, unit, form, height = 150 }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const names = lines.map((line) => line.label).join();
  const data = [times, ...lines.map((line) => line.values)] as unknown as uPlot.AlignedData;
  const scheme = theme.value;
  const inZone = zone.value;
  useEffect(() => {
    const grid = { stroke: ink("--line"), width: 1 };
    const axis = { stroke: ink("--soft"), grid, ticks: grid, font: "11px system-ui" };
    plot.current = new uPlot(
      {
        width: box.current!.clientWidth || 300,
        height,
        cursor: { y: false },
        legend: { live: false },
        tzDate: (at) => (inZone === "UTC" ? uPlot.tzDate(new Date(at * 1e3), "Etc/UTC") : new Date(at * 1e3)),
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.08] } },
        axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map(clock) }, { ...axis, size: 56, values: (_, ticks) => ticks.map((tick) => form(tick)) }],
        series: [
          {},
          ...lines.map((line, index) => ({
            label: line.label,
            stroke: ink(line.dash ? "--bad" : `--chart-${index}`),
            width: 1.5,
            points: { show: times.length < 3 },
            ...(line.dash ? { dash: [6, 4] } : {}),
          })),
        ],
      },
      data,
      box.current!,
    );
    const fit = new ResizeObserver(() => plot.current?.setSize({ width: box.current!.clientWidth, height }));
    fit.observe(box.current!);
    return () => {
      fit.disconnect();
      plot.current?.destroy();
    };
  }, [names, scheme, inZone, height]);
  useEffect(() => plot.current?.setData(data), [times, ...lines.map((line) => line.values)]);
  const rows = times.map((at, index) => ({ at, index })).slice(-12).reverse();
  return (
    <figure class="chart">
      <figcaption>
        {title} <span class="note">{unit}</span>
      </figcaption>
      <div ref={box} aria-hidden="true" />
      <details>
        <summary>Values of {title.toLowerCase()}</summary>
        <table>
          <thead>
            <tr>
              <th scope="col">time</th>
              {lines.map((line) => (
                <th scope="col" class="number">{line.label}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ at, index }) => (
              <tr key={at}>
                <td>{moment(at)}</td>
                {lines.map((line) => (
                  <td class="number">{form(line.values[index] ?? null)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
