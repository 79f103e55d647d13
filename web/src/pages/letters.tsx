/** Rows that failed, by cause, with some of them as they came in. */
import { useSignal, type Signal } from "@preact/signals";
import { change, changed, Refused, useLive, type Problem, type Schemas, type When } from "../api";
import { count, moment, plural } from "../format";
import { Empty, Faults, FlowLink, TaskLink, Waiting } from "../parts/parts";
import { cell } from "../parts/rows";
import { choose, param } from "../router";

type Causes = Schemas["LetterCauses"];
type Cause = Schemas["LetterCause"];

const WHEN: When = { on: ["rates", "plan"], leastMs: 8000 };

export function LettersPage() {
  const live = useLive<Causes>("/dead-letters/causes", WHEN).value;
  const result = useSignal("");
  return (
    <>
      <p class="lead">Rows for which a task raised, and which it has left out (<code>on_error: dead_letter</code>).</p>
      {result.value && <p class="banner banner-good" role="status">● {result.value}</p>}
      <Waiting live={live}>{(answer) => <Shown causes={answer.causes} result={result} />}</Waiting>
    </>
  );
}

function Shown({ causes, result }: { causes: Cause[]; result: Signal<string> }) {
  const wanted = param("select");
  const shown = causes.filter((cause) => !wanted || cause.dataflows.includes(wanted) || cause.task === wanted);
  const flows = [...new Set(causes.flatMap((cause) => cause.dataflows))].sort();
  if (!causes.length)
    return (
      <Empty title="No dead letters">
        <p>No task has left a row out. A task with <code>on_error: dead_letter</code> keeps rows that it cannot do here.</p>
      </Empty>
    );
  return (
    <>
      <div class="filters">
        <label>
          Dataflow
          <select value={wanted} onChange={(event) => choose({ select: event.currentTarget.value })}>
            <option value="">all</option>
            {flows.map((name) => <option value={name}>{name}</option>)}
          </select>
        </label>
        <span class="note">{plural(shown.reduce((sum, cause) => sum + cause.rows, 0), "row")}, {plural(shown.length, "cause")}</span>
      </div>
      <Redrives causes={shown} result={result} />
      {shown.map((cause) => <CauseCard key={`${cause.task} ${cause.cause}`} cause={cause} />)}
    </>
  );
}

/** Rows are offered again by task: whose cause is gone goes through, the others come back. */
function Redrives({ causes, result }: { causes: Cause[]; result: Signal<string> }) {
  const problem = useSignal<Problem | null>(null);
  const running = useSignal("");
  const tasks = [...new Set(causes.map((cause) => cause.task))];
  const rows = (task: string) => causes.reduce((sum, cause) => sum + (cause.task === task ? cause.rows : 0), 0);
  const redrive = async (name: string) => {
    const [flow, ...rest] = name.split(".");
    result.value = "";
    problem.value = null;
    running.value = name;
    try {
      const path = `/dataflows/${encodeURIComponent(flow!)}/tasks/${encodeURIComponent(rest.join("."))}/redrive`;
      const done = await change<Schemas["RedriveResult"]>("POST", path);
      const again = done.refused ? `${plural(done.refused, "row")} failed again` : "none failed";
      result.value = `${plural(done.rows, "row")} went through ${done.task}; ${again}.`;
      changed();
    } catch (error) {
      if (error instanceof Refused) problem.value = error.problem;
    }
    running.value = "";
  };
  return (
    <section class="panel" aria-label="Offer rows again">
      <p>
        Replace the dataflow, or remove the cause. Then offer the rows to their task again: each goes through it and all behind it once.
        What fails again comes back here.
      </p>
      <div class="filters">
        {tasks.map((name) => (
          <button type="button" class="main" disabled={running.value !== ""} onClick={() => void redrive(name)}>
            {running.value === name ? "Offering…" : `Offer ${plural(rows(name), "row")} to ${name} again`}
          </button>
        ))}
        <a class="button" href="/v1/dead-letters" download="dead-letters.json">Download them</a>
      </div>
      {problem.value && <Faults problem={problem.value} />}
    </section>
  );
}

function CauseCard({ cause }: { cause: Cause }) {
  const names = [...new Set(cause.samples.flatMap((sample) => (typeof sample.record === "object" && sample.record ? Object.keys(sample.record) : ["row"])))];
  return (
    <section class="panel cause" aria-label={`Cause in ${cause.task}`}>
      <header>
        <h2><TaskLink name={cause.task} /></h2>
        <b class="figure">{count(cause.rows)} rows</b>
      </header>
      <p><code class="error">{cause.cause}</code></p>
      <p class="note">
        {moment(cause.first_at, true)} to {moment(cause.last_at)} · plan snapshot {cause.snapshots.join(", ")} · for{" "}
        {cause.dataflows.map((name, index) => <>{index ? ", " : ""}<FlowLink name={name} /></>)}
      </p>
      <div class="scroll" role="region" aria-label={`Rows of ${cause.task}`} tabIndex={0}>
        <table>
          <caption>The newest {cause.samples.length} as they came in</caption>
          <thead><tr>{names.map((name) => <th scope="col">{name}</th>)}<th scope="col">at</th></tr></thead>
          <tbody>
            {cause.samples.map((sample) => (
              <tr>{names.map((name) => <td>{cell(sample.record, name)}</td>)}<td>{moment(sample.at)}</td></tr>
            ))}
          </tbody>
        </table>
      </div>
      <details><summary>The whole error</summary><pre>{cause.samples[0]?.error}</pre></details>
    </section>
  );
}
