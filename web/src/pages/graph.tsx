/** The graph of all that runs: who shares what, where it is stuck, and how it was at an earlier plan snapshot. */
import { ONCE, useLive, type Schemas, type When } from "../api";
import { moment, plural } from "../format";
import { Drawing, NodeTable } from "../parts/drawing";
import { Empty, Team, Waiting } from "../parts/parts";
import { choose, here, param } from "../router";
import { giveColours } from "../teams";
import { TaskPanel } from "./task";

type Graph = Schemas["RunningGraph"];
type Rates = Schemas["GraphRates"];
type Steps = Schemas["Snapshots"];

const PLANS: When = { on: ["plan"] };

export function GraphPage() {
  const at = param("at");
  const query = new URLSearchParams();
  if (param("select")) query.set("select", param("select"));
  if (param("level")) query.set("level", param("level"));
  const rates = useLive<Rates>(at ? null : `/graph/rates?${query}`).value;
  const number = at || rates.data?.snapshot;
  const withNumber = new URLSearchParams(query);
  if (number != null) withNumber.set("snapshot", String(number));
  const graph = useLive<Graph>(number == null ? `/graph?${query}` : `/graph?${withNumber}`, ONCE).value;
  const steps = useLive<Steps>("/snapshots", PLANS).value.data?.snapshots ?? [];
  return (
    <>
      <Controls steps={steps} at={at} newest={rates.data?.snapshot} />
      <Waiting live={graph}>
        {(drawn) => <Shown graph={drawn} rates={at ? undefined : rates.data} steps={steps} />}
      </Waiting>
    </>
  );
}

function Controls({ steps, at, newest }: { steps: Schemas["SnapshotStep"][]; at: string; newest?: number }) {
  const index = at ? steps.findIndex((step) => String(step.number) === at) : steps.length - 1;
  const step = steps[index];
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <label>
        Show
        <input
          type="search" data-search placeholder="everything" value={param("select")} size={24} list="selections"
          onChange={(event) => choose({ select: event.currentTarget.value, node: "" })}
        />
      </label>
      <datalist id="selections">
        <option value="team:" /><option value="type:" />
      </datalist>
      <label>
        Nodes are
        <select value={param("level") || "auto"} onChange={(event) => choose({ level: event.currentTarget.value === "auto" ? "" : event.currentTarget.value, node: "" })}>
          <option value="auto">what fits</option>
          <option value="tasks">tasks</option>
          <option value="dataflows">dataflows</option>
          <option value="teams">teams</option>
        </select>
      </label>
      {steps.length > 1 && (
        <label class="slider">
          Plan snapshot
          <input
            type="range" min={0} max={steps.length - 1} value={index < 0 ? steps.length - 1 : index}
            aria-valuetext={step ? said(step) : "newest"}
            onInput={(event) => {
              const chosen = Number(event.currentTarget.value);
              choose({ at: chosen === steps.length - 1 ? "" : String(steps[chosen]!.number), node: "" });
            }}
          />
          <span class="note">{at ? said(step) : `${newest ?? "newest"}, now`}</span>
        </label>
      )}
      {at && <a href={here({ at: "" })}>Back to now</a>}
    </form>
  );
}

function said(step?: Schemas["SnapshotStep"]): string {
  if (!step) return "not kept";
  return `${step.number}: ${step.action} ${step.objects.join(", ")}${step.at ? `, ${moment(step.at)}` : ""}`;
}

function Shown({ graph, rates, steps }: { graph: Graph; rates?: Rates; steps: Schemas["SnapshotStep"][] }) {
  giveColours(graph.owners);
  if (!graph.nodes.length)
    return (
      <Empty title="Nothing runs here">
        <p>{param("select") ? "Show everything, or " : ""}<a href="/plan">submit a dataflow</a>.</p>
      </Empty>
    );
  const chosen = graph.nodes.find((node) => node.name === param("node") || node.id === param("node"));
  const owners = [...new Set(graph.nodes.flatMap((node) => node.owners))].sort();
  const shared = graph.submitted - graph.running;
  return (
    <>
      {rates && <p class={`banner ${rates.bottleneck.cause === "none" ? "banner-good" : "banner-bad"}`}>{rates.bottleneck.sentence}</p>}
      <div class="legend">
        {owners.slice(0, 12).map((owner) => <Team owner={owner} />)}
        {owners.length > 12 && <span class="note">and {owners.length - 12} more</span>}
        <span class="note">
          {plural(graph.tasks, "task")}{graph.tasks < graph.running ? ` of ${graph.running}` : ""}; {graph.submitted} were submitted,
          sharing saves {shared}. A line is as wide as its rate{graph.level === "tasks" ? "" : `; a node is all tasks that the same ${graph.level} use`}.
        </span>
      </div>
      <div class={chosen && graph.level === "tasks" ? "split" : ""}>
        <div>
          <Drawing graph={graph} rates={rates} chosen={chosen?.id} />
          <NodeTable graph={graph} rates={rates} chosen={chosen?.id} />
        </div>
        {chosen && graph.level === "tasks" && <TaskPanel key={chosen.id} node={chosen} steps={steps} past={!rates} />}
      </div>
    </>
  );
}
