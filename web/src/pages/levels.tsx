/** Service levels: who is late how often, and how much lateness is left. */
import { useLive, type Schemas } from "../api";
import { share, span } from "../format";
import { Chart } from "../parts/chart";
import { Bar, Empty, FlowLink, State, Team, Waiting } from "../parts/parts";
import { SortedTable } from "../parts/table";
import { here, param } from "../router";
import { giveColours } from "../teams";

type Seen = Schemas["Overview"];
type Row = Schemas["DataflowRow"];
type Series = Schemas["DataflowSeries"];

export function LevelsPage() {
  const live = useLive<Seen>("/overview").value;
  return <Waiting live={live}>{(seen) => <Shown seen={seen} />}</Waiting>;
}

function Shown({ seen }: { seen: Seen }) {
  giveColours(seen.teams);
  if (!seen.dataflows.length) return <Empty title="No dataflow runs yet"><p><a href="/plan">Submit one</a>; its limits are in its <code>service_level</code>.</p></Empty>;
  const limited = seen.dataflows.filter((row) => row.latency_max_s != null);
  const late = limited.filter((row) => (row.budget_left ?? 1) < 0);
  const open = param("open") || limited[0]?.name || "";
  const row = seen.dataflows.find((one) => one.name === open);
  return (
    <>
      <p class={`banner ${late.length ? "banner-bad" : "banner-good"}`}>
        {limited.length === 0 ? "● No dataflow has a latency limit; latency_max_s in its service_level sets one." : late.length ? `▲ ${late.map((one) => one.name).join(", ")} ${late.length === 1 ? "has" : "have"} used up the error budget of this month.` : `● All ${limited.length} dataflows with a limit are within their error budget.`}
      </p>
      <SortedTable<Row>
        label="Service levels" rows={seen.dataflows} id={(one) => one.name} open={(one) => here({ open: one.name })} chosen={open}
        columns={[
          { key: "name", title: "Dataflow", value: (one) => one.name, cell: (one) => <><a href={here({ open: one.name })}>{one.name}</a><Team owner={one.owner} /></> },
          { key: "state", title: "State", value: (one) => one.state, cell: (one) => <State state={one.state} /> },
          { key: "limit", title: "Limit", number: true, value: (one) => one.latency_max_s, cell: (one) => one.latency_max_s == null ? <span class="note">none</span> : span(one.latency_max_s) },
          { key: "p50", title: "p50", number: true, value: (one) => one.p50_s, cell: (one) => span(one.p50_s) },
          { key: "p99", title: "p99", number: true, value: (one) => one.p99_s, cell: (one) => span(one.p99_s) },
          { key: "time", title: "In time", number: true, value: (one) => one.in_time, cell: (one) => share(one.in_time, 1), help: "The share of the known time in which it was as agreed" },
          { key: "budget", title: "Error budget", value: (one) => one.budget_left, cell: (one) => one.budget_left == null ? "–" : <Bar value={one.budget_left} bad={one.budget_left < 0.25} label={one.budget_left < 0 ? "overdrawn" : `${span(one.budget_left_s)} left this month`} />, help: "The time of this month in which it may be other than agreed" },
          { key: "waiting", title: "Behind", number: true, value: (one) => one.waiting_s, cell: (one) => span(one.waiting_s) },
        ]}
      />
      {row && <Latency key={row.name} row={row} />}
    </>
  );
}

function Latency({ row }: { row: Row }) {
  const live = useLive<Series>(`/dataflows/${encodeURIComponent(row.name)}/series`).value;
  return (
    <section class="panel" aria-label={`Latency of ${row.name}`}>
      <header><h2>{row.name}: the last hour</h2><FlowLink name={row.name} /></header>
      <Waiting live={live}>
        {(seen) => {
          const column = (name: string) => seen.series[name] ?? [];
          const limit = row.latency_max_s;
          return (
            <div class="columns">
              <Chart title="Latency" unit="seconds, from taken in to delivered" times={seen.times} form={(value) => span(value)}
                lines={[{ label: "p50", values: column("p50_s") }, { label: "p95", values: column("p95_s") }, { label: "p99", values: column("p99_s") }, ...(limit == null ? [] : [{ label: "limit", values: seen.times.map(() => limit), dash: true }])]} />
              <Chart title="Rows" unit="per second" times={seen.times} form={(value) => value == null ? "–" : Math.round(value).toLocaleString("en")}
                lines={[{ label: "in", values: column("in_per_s") }, { label: "out", values: column("out_per_s") }]} />
            </div>
          );
        }}
      </Waiting>
    </section>
  );
}
