/** The panel of a task: how it is done, what it costs and who pays, how it was lately. */
import { useSignal } from "@preact/signals";
import { change, changed, Refused, useLive, type Problem, type Schemas } from "../api";
import { count, money, moment, rate, share, span } from "../format";
import { Chart } from "../parts/chart";
import { Faults, FlowLink, Team, Waiting } from "../parts/parts";
import { LiveRows } from "../parts/rows";
import { here } from "../router";

type Panel = Schemas["TaskPanel"];
type Node = Schemas["GraphNode"];

export function TaskPanel({ node, steps, past }: { node: Node; steps: Schemas["SnapshotStep"][]; past: boolean }) {
  const user = node.users.find((one) => node.name.startsWith(`${one.dataflow}.`)) ?? node.users[0]!;
  const path = `/dataflows/${encodeURIComponent(user.dataflow)}/tasks/${encodeURIComponent(user.task)}`;
  const live = useLive<Panel>(past ? null : path).value;
  const touched = steps.filter((step) => step.objects.some((name) => touches(name, node))).slice(-8).reverse();
  return (
    <aside class="panel" aria-label={`Task ${node.name}`}>
      <header>
        <h2>{node.name}</h2>
        <a class="button" href={here({ node: "" })} aria-label="Close the task">✕</a>
      </header>
      {past ? <p class="note">As of an earlier plan snapshot; what was measured then is not kept here.</p> : <Waiting live={live}>{(panel) => <Details panel={panel} path={path} />}</Waiting>}
      {touched.length > 0 && (
        <>
          <h3>Plan snapshots that touched it</h3>
          <ul class="plain">
            {touched.map((step) => (
              <li>
                <a href={here({ at: String(step.number), node: "" })}>{step.number}</a> {step.action} {step.objects.join(", ")}{" "}
                <span class="note">{moment(step.at, true)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </aside>
  );
}

function touches(name: string, node: Node): boolean {
  return node.users.some((user) => name === user.dataflow || name === `${user.dataflow}.${user.task}`);
}

function Details({ panel, path }: { panel: Panel; path: string }) {
  const now = panel.rates;
  const known = panel.series.in_per_s?.length ?? 0;
  const times = panel.times.slice(-known || panel.times.length);
  const column = (name: string) => panel.series[name]?.slice(-times.length) ?? [];
  return (
    <>
      <p>{panel.summary}</p>
      <dl class="facts">
        <div><dt>In</dt><dd>{rate(now?.in_per_s)} rows/s</dd></div>
        <div><dt>Out</dt><dd>{rate(now?.out_per_s)} rows/s</dd></div>
        <div><dt>Own delay</dt><dd>{span(now?.own_delay_s)}</dd></div>
        <div><dt>Since the source</dt><dd>{span(now?.delay_s)}</dd></div>
        <div><dt>CPU</dt><dd>{count(now?.cores, 3)} cores, {share(now?.share)}</dd></div>
        <div><dt>Costs</dt><dd>{money(panel.cost_per_h, panel.currency)} an hour</dd></div>
        {panel.limit != null && <div><dt>Limit</dt><dd>{count(panel.limit)} rows a batch</dd></div>}
        {panel.partitions != null && <div><dt>Partitions</dt><dd>{panel.partitions}</dd></div>}
      </dl>
      {known > 0 && panel.role !== "sink" && (
        <Chart title="Rows" unit="per second" times={times} form={(value) => rate(value)} height={120}
          lines={[{ label: "in", values: column("in_per_s") }, { label: "out", values: column("out_per_s") }]} />
      )}
      <LiveRows path={path} task={panel.name} />
      <Ways panel={panel} path={path} />
      <h3>{panel.sharers.length > 1 ? `Shared by ${panel.sharers.length} dataflows` : "Used by one dataflow"}</h3>
      <div class="x-scroll"><table>
        <thead><tr><th scope="col">dataflow</th><th scope="col">calls it</th><th scope="col" class="number">pays an hour</th></tr></thead>
        <tbody>
          {panel.sharers.map((one) => (
            <tr>
              <th scope="row"><FlowLink name={one.dataflow} /> <Team owner={one.owner} /></th>
              <td>{one.task}{one.paused ? " (paused)" : ""}</td>
              <td class="number">{money(one.cost_per_h, panel.currency)}</td>
            </tr>
          ))}
        </tbody>
      </table></div>
    </>
  );
}

function Options({ options }: { options?: Record<string, unknown> | null }) {
  if (!options) return <p class="note">Only members of its teams and operators may see them.</p>;
  return <pre tabIndex={0}>{JSON.stringify(options, null, 2)}</pre>;
}

function Ways({ panel, path }: { panel: Panel; path: string }) {
  const problem = useSignal<Problem | null>(null);
  const act = async (method: string, what: string, body?: unknown) => {
    problem.value = null;
    try {
      await change(method, `${path}/${what}`, body);
      changed();
    } catch (error) {
      if (error instanceof Refused) problem.value = error.problem;
    }
  };
  const several = panel.alternates.length > 1;
  return (
    <>
      <h3>{several ? `${panel.alternates.length} ways to do it` : "How it is done"}</h3>
      <div class="x-scroll"><table>
        <thead><tr><th scope="col">way</th><th scope="col" class="number">value</th><th scope="col" class="number">CPU a row</th><th scope="col" class="number">out per in</th></tr></thead>
        <tbody>
          {panel.alternates.map((one) => (
            <tr class={one.active ? "active" : ""}>
              <th scope="row">{one.active ? "● " : ""}{one.name}{one.name !== one.type && <span class="sub">{one.type}</span>}{several && !one.active && <div><button type="button" onClick={() => act("PUT", "alternate", { alternate: one.name })}>Use {one.name}</button></div>}</th>
              <td class="number">{one.value.toFixed(2)}</td>
              <td class="number">{one.cpu_us == null ? "–" : `${count(one.cpu_us, 1)} µs`}<span class="sub">{one.cost_from}</span></td>
              <td class="number">{count(one.selectivity, 2)}</td>
            </tr>
          ))}
        </tbody>
      </table></div>
      {several && <p class="note">{panel.reason} {panel.held && <button type="button" onClick={() => act("POST", "release")}>Release it</button>}</p>}
      {problem.value && <Faults problem={problem.value} />}
      <details>
        <summary>Options</summary>
        <Options options={panel.alternates.find((one) => one.active)?.options} />
      </details>
    </>
  );
}
