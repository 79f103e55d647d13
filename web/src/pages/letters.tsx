/** Rows that failed, by cause, with some of them as they came in. */
import { useLive, type Schemas } from "../api";
import { count, moment } from "../format";
import { Empty, FlowLink, TaskLink, Waiting } from "../parts/parts";
import { choose, param } from "../router";

type Causes = Schemas["LetterCauses"];
type Cause = Schemas["LetterCause"];

export function LettersPage() {
  const live = useLive<Causes>("/dead-letters/causes", 10000).value;
  return (
    <>
      <p class="lead">Rows for which a task raised, and which it was told to leave out (<code>on_error: dead_letter</code>).</p>
      <Waiting live={live}>{(answer) => <Shown causes={answer.causes} />}</Waiting>
    </>
  );
}

function Shown({ causes }: { causes: Cause[] }) {
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
        <span class="note">{count(shown.reduce((sum, cause) => sum + cause.rows, 0))} rows, {shown.length} causes</span>
      </div>
      {shown.map((cause) => <CauseCard key={`${cause.task} ${cause.cause}`} cause={cause} />)}
    </>
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

function cell(record: unknown, name: string): string {
  const value = typeof record === "object" && record ? (record as Record<string, unknown>)[name] : record;
  return value == null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value);
}
