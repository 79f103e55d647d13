/** What a dataflow would change, before it is submitted: tasks that run already, machines, everybody's bill. */
import { signal } from "@preact/signals";
import { change, changed, Refused, type Problem, type Schemas } from "../api";
import { money, plural, share } from "../format";
import { Empty, Faults, FlowLink, Scroll, Team } from "../parts/parts";
import { href } from "../router";
import { giveColours } from "../teams";

type Preview = Schemas["PlanPreview"];

const EXAMPLE = `name: first
owner: me
tasks:
  - id: numbers
    type: rate
    config: {rows_per_second: 10}
  - id: even
    type: filter
    config: {where: value % 2 = 0}
    inputs: [numbers]
  - id: keep
    type: write_memory
    config: {name: first}
    inputs: [even]
`;

// What somebody has typed outlives a look at another page, and not the tab.
const text = signal(sessionStorage.getItem("plan") ?? "");
const form = signal<"yaml" | "json" | "xml">("yaml");
const replace = signal(false);
const preview = signal<Preview | null>(null);
const problem = signal<Problem | null>(null);
const submitted = signal<Schemas["Changed"] | null>(null);
const busy = signal(false);

function write(value: string): void {
  text.value = value;
  sessionStorage.setItem("plan", value);
  const begin = value.trimStart();
  form.value = begin.startsWith("{") ? "json" : begin.startsWith("<") ? "xml" : "yaml";
  preview.value = null;
  submitted.value = null;
  problem.value = null;
}

async function guarded(work: () => Promise<void>): Promise<void> {
  busy.value = true;
  problem.value = null;
  try {
    await work();
  } catch (error) {
    if (error instanceof Refused) problem.value = error.problem;
  } finally {
    busy.value = false;
  }
}

const look = () =>
  guarded(async () => {
    preview.value = null;
    submitted.value = null;
    preview.value = await change<Preview>("POST", "/plans", { text: text.value, format: form.value, replace: replace.value });
  });

const submit = () =>
  guarded(async () => {
    const planned = preview.value!;
    const body = { dataflows: planned.documents, replace: replace.value };
    submitted.value = await change<Schemas["Changed"]>("POST", "/dataflows", body, { "If-Match": `"plan-${planned.snapshot}"` });
    preview.value = null;
    changed();
  });

export function PlanPage() {
  return (
    <>
      <p class="lead">Paste a dataflow or drop a file. Nothing changes until you submit it.</p>
      <form
        class="plan-form"
        onSubmit={(event) => {
          event.preventDefault();
          void look();
        }}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          void event.dataTransfer?.files[0]?.text().then(write);
        }}
      >
        <label for="dataflow">Dataflow, as YAML, JSON or XML</label>
        <textarea id="dataflow" spellcheck={false} rows={16} value={text.value} onInput={(event) => write(event.currentTarget.value)} />
        <div class="filters">
          <button type="submit" class="main" disabled={busy.value || !text.value.trim()}>Preview</button>
          <label><input type="checkbox" checked={replace.value} onChange={(event) => (replace.value = event.currentTarget.checked)} /> replace the one of this name</label>
          <span class="note">read as {form.value.toUpperCase()}</span>
          {!text.value && <button type="button" onClick={() => write(EXAMPLE)}>Begin with an example</button>}
        </div>
      </form>
      {problem.value && <Refusal problem={problem.value} />}
      {submitted.value && <Done answer={submitted.value} />}
      {preview.value && <Result plan={preview.value} />}
      {!preview.value && !problem.value && !submitted.value && (
        <Empty title="The preview will be here">
          <p>It says which tasks run already, which are new, and what everybody pays before and after.</p>
        </Empty>
      )}
    </>
  );
}

function Refusal({ problem: refused }: { problem: Problem }) {
  return (
    <>
      <Faults problem={refused} />
      {refused.condition === "PLAN_STALE" && <p><button type="button" class="main" onClick={() => void look()}>Preview again</button></p>}
      {refused.condition === "DATAFLOW_CHANGED" && <p class="note">Tick “replace the one of this name” to update it.</p>}
    </>
  );
}

function Done({ answer }: { answer: Schemas["Changed"] }) {
  const names = [...answer.submitted.map((one) => one.dataflow), ...answer.continued];
  return (
    <p class="banner banner-good" role="status">
      ● {names.join(", ")} {names.length === 1 ? "runs" : "run"} with plan snapshot {answer.snapshot}.{" "}
      <a href={href("/graph", { select: names.join(",") })}>Show it in the graph</a>
    </p>
  );
}

function Result({ plan }: { plan: Preview }) {
  giveColours(plan.bills.map((bill) => bill.owner));
  const flow = plan.dataflows[0]!;
  const counts = (kind: string) => flow.tasks.filter((task) => task.change === kind).length;
  const runs = counts("reused") + counts("rewritten");
  const mine = plan.bills.find((bill) => bill.dataflow === flow.dataflow);
  const moved = plan.bills.filter((bill) => bill.after != null && Math.abs((bill.after ?? 0) - (bill.before ?? 0)) > 5e-5);
  const rest = plan.bills.length - moved.length;
  return (
    <section class="result" aria-label="Preview">
      <h2>
        {flow.dataflow} <Team owner={flow.owner} /> <span class="tag">{flow.change}</span>
      </h2>
      <p class="figure-line">
        <b>{share(runs / Math.max(flow.tasks.length, 1))}</b> of it runs already: {plural(counts("reused"), "task")} shared
        {counts("rewritten") ? `, ${counts("rewritten")} from wider streams` : ""}, <b>{counts("new")} new</b>.
        {flow.touched.length > 0 && <> It shares with {flow.touched.slice(0, 6).map((name, index) => <>{index ? ", " : ""}<FlowLink name={name} /></>)}{flow.touched.length > 6 ? ` and ${flow.touched.length - 6} more` : ""}.</>}{" "}
        {plan.tasks_after} tasks would run in place of {plan.tasks_before}.
      </p>
      {plan.notices.map((notice) => <p class="note">{notice}</p>)}
      <div class="columns">
        <Scroll label="Tasks of the preview">
          <table>
            <caption>Tasks</caption>
            <thead><tr><th scope="col">task</th><th scope="col">type</th><th scope="col">becomes</th><th scope="col">detail</th></tr></thead>
            <tbody>
              {flow.tasks.map((task) => (
                <tr><th scope="row">{task.task}</th><td>{task.type}</td><td><span class={`tag tag-${task.change}`}>{task.change}</span></td><td>{task.detail}</td></tr>
              ))}
            </tbody>
          </table>
        </Scroll>
        <Scroll label="Bills before and after">
          <table>
            <caption>Bills, an hour</caption>
            <thead><tr><th scope="col">dataflow</th><th scope="col" class="number">before</th><th scope="col" class="number">after</th><th scope="col" class="number">change</th><th scope="col" class="number">alone</th></tr></thead>
            <tbody>
              {moved.map((bill) => {
                const difference = (bill.after ?? 0) - (bill.before ?? 0);
                return (
                  <tr class={bill.dataflow === flow.dataflow ? "active" : ""}>
                    <th scope="row">{bill.dataflow} <Team owner={bill.owner} /></th>
                    <td class="number">{money(bill.before, plan.currency)}</td>
                    <td class="number">{money(bill.after, plan.currency)}</td>
                    <td class={`number ${difference > 0 ? "more" : "less"}`}>{difference > 0 ? "+" : ""}{money(difference, plan.currency)}</td>
                    <td class="number">{money(bill.alone, plan.currency)}</td>
                  </tr>
                );
              })}
            </tbody>
            <tfoot>
              <tr><th scope="row">machines in all</th><td class="number">{money(plan.total_before, plan.currency)}</td><td class="number">{money(plan.total_after, plan.currency)}</td><td class="number">{money(plan.total_after - plan.total_before, plan.currency)}</td><td /></tr>
            </tfoot>
          </table>
          {rest > 0 && <p class="note">{plural(rest, "other dataflow")}: unchanged, or not yours to see.</p>}
        </Scroll>
      </div>
      {mine?.after != null && mine.alone != null && (
        <p>
          {flow.dataflow} would pay <b>{money(mine.after, plan.currency)}</b> an hour; alone it would pay {money(mine.alone, plan.currency)}.
        </p>
      )}
      {flow.change === "unchanged" ? (
        <p class="note">It runs exactly so; there is nothing to submit.</p>
      ) : (
        <button type="button" class="main" disabled={busy.value} onClick={() => void submit()}>
          {flow.change === "replaced" ? "Replace" : "Submit"} {flow.dataflow}
        </button>
      )}{" "}
      <span class="note">computed for plan snapshot {plan.snapshot}</span>
    </section>
  );
}
