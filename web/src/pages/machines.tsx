/** Machines, how busy they are and what runs on them. */
import { useLive, type Schemas } from "../api";
import { count, DASH, money, plural, rate, share, short, span } from "../format";
import { Bar, Card, Empty, TaskLink, Waiting } from "../parts/parts";
import { SortedTable } from "../parts/table";

type View = Schemas["MachinesView"];

export function MachinesPage() {
  const live = useLive<View>("/usage").value;
  return <Waiting live={live}>{(view) => <Shown view={view} />}</Waiting>;
}

function Shown({ view }: { view: View }) {
  if (!view.at)
    return (
      <Empty title="Nothing was measured yet">
        <p>The engine measures its machines every five seconds while something runs. <a href="/plan">Submit a dataflow</a>.</p>
      </Empty>
    );
  const cores = view.machines.reduce((sum, one) => sum + one.cores, 0);
  const busy = view.machines.reduce((sum, one) => sum + (one.busy ?? 0) * one.cores, 0);
  return (
    <>
      <div class="cards">
        <Card title="Machines" note={plural(cores, "core")}>{view.machines.length}</Card>
        <Card title="Cores busy" note={cores ? `${share(busy / cores)} of all` : ""}>{count(busy, 1)}</Card>
        <Card title="Cost per hour" note={cores ? `${money(view.cost_per_h / cores, view.currency, 3)} a core` : ""}>{money(view.cost_per_h, view.currency, 2)}</Card>
        <Card title="Fragments" note="streaming queries of Spark">{view.fragments.length}</Card>
      </div>
      <h2>Machines</h2>
      <SortedTable
        label="Machines" rows={view.machines} id={(one) => one.name}
        columns={[
          { key: "name", title: "Machine", value: (one) => one.name, cell: (one) => <>{one.name}<span class="sub">{one.vm_class ?? "no class"}, pool {one.pool}</span></> },
          { key: "state", title: "State", value: (one) => one.state, cell: (one) => <span class={`state state-${one.state}`}>{one.state === "ready" ? "● " : "◆ "}{one.state}</span> },
          { key: "cores", title: "Cores", number: true, value: (one) => one.cores, cell: (one) => one.cores },
          { key: "workers", title: "Workers", number: true, value: (one) => one.workers, cell: (one) => one.workers },
          { key: "speed", title: "Speed", number: true, value: (one) => one.speed, cell: (one) => count(one.speed, 2), help: "Of a core, relative to the reference core, as measured" },
          { key: "busy", title: "Busy", value: (one) => one.busy, cell: (one) => <Bar value={one.busy} label={share(one.busy)} bad={(one.busy ?? 0) > 0.9} /> },
          { key: "strip", title: "Last ten minutes", cell: (one) => <Heat values={one.busy_series} name={one.name} /> },
          { key: "price", title: "Price", unit: "per hour", number: true, value: (one) => one.price_per_h, cell: (one) => one.price_per_h == null ? DASH : money(one.price_per_h, view.currency, 2) },
        ]}
      />
      <h2>Fragments</h2>
      <SortedTable
        label="Fragments" rows={view.fragments} id={(one) => one.id} sortParam="fragments"
        columns={[
          { key: "name", title: "Begins with", value: (one) => one.name, cell: (one) => <TaskLink name={one.name} /> },
          { key: "kind", title: "Kind", value: (one) => one.kind, cell: (one) => one.kind },
          { key: "tasks", title: "Tasks", number: true, value: (one) => one.tasks, cell: (one) => one.tasks },
          { key: "rate", title: "Rate", unit: "rows/s", number: true, value: (one) => one.rows_per_s, cell: (one) => rate(one.rows_per_s) },
          { key: "waiting", title: "Waiting", unit: "rows", number: true, value: (one) => one.waiting, cell: (one) => short(one.waiting) },
          { key: "busy", title: "In a batch", value: (one) => one.busy, cell: (one) => <Bar value={one.busy} label={share(one.busy)} bad={one.busy > 0.9} />, help: "Share of the time" },
          { key: "batch", title: "Batch", number: true, value: (one) => one.batch_s, cell: (one) => span(one.batch_s) },
          { key: "parts", title: "Plan / wait / run / commit", cell: (one) => <Parts values={[one.planning_s, one.scheduling_s, one.execution_s, one.commit_s]} /> },
        ]}
      />
    </>
  );
}

/** How busy a machine was: the darker the busier. The number now stands in the column before. */
function Heat({ values, name }: { values: readonly (number | null)[]; name: string }) {
  const known = values.filter((value): value is number => value !== null);
  const mean = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  return (
    <svg class="heat" viewBox={`0 0 ${Math.max(values.length, 1)} 10`} width="180" height="16" preserveAspectRatio="none" role="img" aria-label={`${name} was ${share(mean)} busy on average`}>
      {values.map((value, index) => value !== null && <rect x={index} width="1.05" height="10" style={{ opacity: 0.08 + 0.92 * value }} />)}
    </svg>
  );
}

function Parts({ values }: { values: (number | null | undefined)[] }) {
  const total = values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  if (!total) return <>{DASH}</>;
  return (
    <span class="parts" title={values.map((value) => span(value)).join(" / ")}>
      {values.map((value, index) => <span class={`part part-${index}`} style={{ width: `${(100 * (value ?? 0)) / total}%` }} />)}
      <span class="unseen">{values.map((value) => span(value)).join(" / ")}</span>
    </span>
  );
}
