/** All dataflows in one table, and above it what they do together. */
import { useLive, type Schemas } from "../api";
import { ago, count, DASH, moment, money, plural, rate, share, short, span } from "../format";
import { Bar, Card, Empty, FlowLink, State, Team, Waiting } from "../parts/parts";
import { Spark } from "../parts/spark";
import { SortedTable, type Column } from "../parts/table";
import { choose, href, param } from "../router";
import { giveColours } from "../teams";

type Row = Schemas["DataflowRow"];
type Seen = Schemas["Overview"];

export function OverviewPage() {
  const live = useLive<Seen>("/overview").value;
  return <Waiting live={live}>{(seen) => (seen.dataflows.length ? <Full seen={seen} /> : <NothingRuns seen={seen} />)}</Waiting>;
}

function NothingRuns({ seen }: { seen: Seen }) {
  return (
    <Empty title="No dataflow runs yet">
      <p>Submit one here, from a file that you paste or drop:</p>
      <p><a class="button" href="/plan">Plan and submit a dataflow</a></p>
      <p>Or from a terminal, where <code>{seen.folder}</code> is the engine's folder:</p>
      <pre>headgate init{"\n"}headgate submit first.yaml</pre>
    </Empty>
  );
}

function Full({ seen }: { seen: Seen }) {
  giveColours(seen.teams);
  const query = param("q").toLowerCase();
  const team = param("team");
  const state = param("state");
  const rows = seen.dataflows.filter(
    (row) =>
      (!team || row.owner === team) &&
      (!state || row.state === state) &&
      (!query || `${row.name} ${row.owner} ${row.alternates.join(" ")}`.toLowerCase().includes(query)),
  );
  const saved = seen.alone_per_h - seen.cost_per_h;
  const fewer = seen.tasks_submitted ? 1 - seen.tasks_running / seen.tasks_submitted : 0;
  return (
    <>
      <Unwell seen={seen} />
      <Stuck seen={seen} />
      <div class="cards">
        <Card title="Dataflows" note={states(seen.states)}>{count(seen.dataflows.length)}</Card>
        <Card title="Tasks" note={`${count(seen.tasks_submitted)} submitted, ${share(fewer)} saved by sharing`}>
          {count(seen.tasks_running)}
        </Card>
        <Card title="Cores busy" note={`of ${plural(seen.cores, "core")} on ${plural(seen.machines, "machine")}`}>
          {count(seen.cores_busy, 1)}
        </Card>
        <Card title="Cost per hour" note={`${money(seen.alone_per_h, seen.currency, 2)} if each ran alone`}>
          {money(seen.cost_per_h, seen.currency, 2)}
        </Card>
        <Card title="Saved by sharing" note="an hour, for all together">{money(Math.max(saved, 0), seen.currency, 2)}</Card>
      </div>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          Filter <input type="search" data-search value={param("q")} onInput={(e) => choose({ q: e.currentTarget.value })} />
        </label>
        <label>
          Team
          <select value={team} onChange={(e) => choose({ team: e.currentTarget.value })}>
            <option value="">all</option>
            {seen.teams.map((one) => <option value={one}>{one}</option>)}
          </select>
        </label>
        <label>
          State
          <select value={state} onChange={(e) => choose({ state: e.currentTarget.value })}>
            <option value="">all</option>
            {Object.keys(seen.states).sort().map((one) => <option value={one}>{one}</option>)}
          </select>
        </label>
        <span class="note">
          {rows.length === seen.dataflows.length ? "" : `${rows.length} of ${seen.dataflows.length} · `}
          plan snapshot {seen.snapshot}{seen.at ? ` · measured ${ago(seen.at)}, ${moment(seen.at)}` : " · nothing measured yet"}
        </span>
      </form>
      {rows.length ? (
        <SortedTable
          label="Dataflows"
          columns={columns(seen.currency)}
          rows={rows}
          id={(row) => row.name}
          open={(row) => href("/graph", { select: row.name })}
        />
      ) : (
        <p class="note">No dataflow fits. <button type="button" onClick={() => choose({ q: "", team: "", state: "" })}>Clear the filter</button></p>
      )}
    </>
  );
}

function states(counts: Record<string, number>): string {
  return Object.entries(counts).map(([state, number]) => `${number} ${state}`).join(", ");
}

function Unwell({ seen }: { seen: Seen }) {
  const unwell = seen.dataflows.filter((row) => row.state === "degraded");
  if (!unwell.length) return null;
  const more = unwell.length > 3 ? ` and ${unwell.length - 3} more` : "";
  return (
    <p class="banner banner-bad">
      <span aria-hidden="true">▲</span> {unwell.slice(0, 3).map((row) => row.name).join(", ")}{more} {unwell.length === 1 ? "is" : "are"} degraded:{" "}
      {unwell[0]!.reason.slice(0, 160)}{unwell[0]!.reason.length > 160 ? "…" : ""}
    </p>
  );
}

function Stuck({ seen }: { seen: Seen }) {
  const slow = seen.bottleneck;
  const stuck = slow.cause !== "none";
  return (
    <p class={`banner ${stuck ? "banner-bad" : "banner-good"}`} id="bottleneck">
      <span aria-hidden="true">{stuck ? "▲" : "●"}</span> {slow.sentence}{" "}
      {stuck && slow.name && <a href={href("/graph", { select: slow.dataflows[0], node: slow.name })}>Show it in the graph</a>}
    </p>
  );
}

function columns(currency: string): Column<Row>[] {
  return [
    {
      key: "name", title: "Dataflow", value: (row) => row.name,
      cell: (row) => (
        <>
          <FlowLink name={row.name} />
          <Team owner={row.owner} />
        </>
      ),
    },
    {
      key: "state", title: "State", value: (row) => row.state,
      cell: (row) => (
        <>
          <State state={row.state} />
          {row.reason && <span class="note reason" title={row.reason}>{row.reason}</span>}
        </>
      ),
    },
    { key: "in", title: "In", unit: "rows/s", number: true, value: (row) => row.in_per_s, cell: (row) => rate(row.in_per_s) },
    {
      key: "out", title: "Out", unit: "rows/s", number: true, value: (row) => row.out_per_s,
      cell: (row) => (<span class="with-spark"><Spark values={row.spark} /> {rate(row.out_per_s)}</span>),
      help: "Rows that reached the sinks; the line is the last hour",
    },
    {
      key: "waiting", title: "Waiting", unit: "rows", number: true, value: (row) => row.waiting,
      cell: (row) => (<>{short(row.waiting)}{row.waiting ? <span class="sub">{span(row.waiting_s)}</span> : null}</>),
      help: "Rows that wait before its fragments, and how long they last at the present rate",
    },
    {
      key: "p99", title: "p50 / p99", number: true, value: (row) => row.p99_s,
      cell: (row) => (
        <>
          {span(row.p50_s)} / <b class={late(row) ? "late" : ""}>{span(row.p99_s)}</b>
          {row.latency_max_s != null && <span class="sub">{late(row) ? "over" : "of"} {span(row.latency_max_s)}</span>}
        </>
      ),
    },
    {
      key: "budget", title: "Error budget", value: (row) => row.budget_left,
      cell: (row) => row.budget_left == null ? <span class="note">not known yet</span> : (
        <Bar value={row.budget_left} label={`${share(Math.max(row.budget_left, 0))} left`} bad={row.budget_left < 0.25} />
      ),
      help: "What is left of the time of this month in which it may be other than agreed",
    },
    {
      key: "cost", title: "Cost", unit: "per hour", number: true, value: (row) => row.cost_per_h,
      cell: (row) => row.cost_per_h == null ? DASH : (
        <>{money(row.cost_per_h, currency)}<span class="sub">{money(row.alone_per_h, currency, 2)} alone</span></>
      ),
    },
    {
      key: "shared", title: "Shared", unit: "tasks", number: true, value: (row) => row.shared / Math.max(row.tasks, 1),
      cell: (row) => `${row.shared} of ${row.tasks}`,
    },
    {
      key: "alternates", title: "Alternates",
      cell: (row) => row.alternates.length ? row.alternates.map((one) => <span class="tag">{one}</span>) : DASH,
    },
    {
      key: "dead", title: "Dead letters", unit: "rows", number: true, value: (row) => row.rows_dead,
      cell: (row) => row.rows_dead ? <a href={href("/letters", { select: row.name })}>{count(row.rows_dead)}</a> : "0",
    },
  ];
}

function late(row: Row): boolean {
  return row.latency_max_s != null && row.p99_s != null && row.p99_s > row.latency_max_s;
}
