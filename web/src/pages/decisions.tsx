/** What was decided and why: inputs, what was not done and for what reason, what was predicted and what came of it. */
import { useSignal } from "@preact/signals";
import { change, changed, ONCE, Refused, useLive, type Problem, type Schemas, type When } from "../api";
import { moment, share, span } from "../format";
import { Empty, Faults, Scroll, Waiting } from "../parts/parts";
import { SortedTable } from "../parts/table";
import { here, param } from "../router";

type Policy = Schemas["PolicyAnswer"];
type Answer = Schemas["DecisionsAnswer"];
type Decision = Schemas["DecisionAnswer"];
type Details = Schemas["DecisionDetails"];

const WHEN: When = { on: ["decision", "plan"] };
const MODES = { off: "does nothing", recommend: "says what it would do", auto: "does what it decides" } as const;

export function DecisionsPage() {
  const policy = useLive<Policy>("/policy", WHEN).value;
  const live = useLive<Answer>("/decisions?limit=200", WHEN).value;
  return (
    <>
      <Waiting live={policy}>{(now) => <Chosen now={now} />}</Waiting>
      <Waiting live={live}>{(answer) => <Shown decisions={[...answer.decisions].reverse()} />}</Waiting>
      {param("open") && <Why key={param("open")} number={param("open")} />}
    </>
  );
}

function Chosen({ now }: { now: Policy }) {
  const problem = useSignal<Problem | null>(null);
  const choose = async (mode: string) => {
    problem.value = null;
    try {
      await change("PUT", "/policy", { mode });
      changed();
    } catch (error) {
      if (error instanceof Refused) problem.value = error.problem;
    }
  };
  const limits = [now.budget_per_h && `at most ${now.budget_per_h} an hour`, now.machines_max && `at most ${now.machines_max} machines`].filter(Boolean);
  return (
    <>
      <p class={`banner ${now.failure ? "banner-bad" : "banner-good"}`}>
        {now.failure ? `▲ ${now.policy}: ${now.failure}` : `● Policy ${now.policy} ${MODES[now.mode as keyof typeof MODES] ?? `is in mode ${now.mode}`}`}
        {limits.length ? `, ${limits.join(", ")}` : ""}. {now.by && <span class="note">Chosen by {now.by}{now.reason && `: ${now.reason}`}.</span>}
        {now.under_way.length > 0 && ` ${now.under_way.length} under way.`}
      </p>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Mode
          <select value={now.mode} onChange={(event) => void choose(event.currentTarget.value)}>
            {Object.entries(MODES).map(([mode, means]) => <option value={mode}>{mode}: {means}</option>)}
          </select>
        </label>
      </form>
      {problem.value && <Faults problem={problem.value} />}
    </>
  );
}

function Shown({ decisions }: { decisions: Decision[] }) {
  if (!decisions.length)
    return (
      <Empty title="Nothing was decided yet">
        <p>A policy decides when it has seen enough; in mode <b>recommend</b> it says what it would do and changes nothing.</p>
        <p>From a terminal: <code>headgate policy --help</code>.</p>
      </Empty>
    );
  return (
    <SortedTable
      label="Decisions" rows={decisions} id={(one) => String(one.number)} open={(one) => here({ open: String(one.number) })} chosen={param("open")}
      columns={[
        { key: "number", title: "Decision", value: (one) => one.number, cell: (one) => <a href={here({ open: String(one.number) })}>{one.number}</a> },
        { key: "when", title: "When", value: (one) => one.at, cell: (one) => moment(one.at, true) },
        { key: "policy", title: "Policy", value: (one) => one.policy, cell: (one) => <>{one.policy}<span class="sub">{one.mode}</span></> },
        { key: "rule", title: "Rule", value: (one) => one.rule, cell: (one) => one.rule },
        { key: "what", title: "What", cell: (one) => actions(one) },
        { key: "outcome", title: "Outcome", value: (one) => one.outcome, cell: (one) => <>{one.outcome}{one.outcome_reason && <span class="note reason">{one.outcome_reason}</span>}</> },
        { key: "after", title: "After", number: true, value: (one) => one.ended_at == null ? null : one.ended_at - one.at, cell: (one) => span(one.ended_at == null ? null : one.ended_at - one.at) },
        { key: "error", title: "Prediction off", number: true, value: (one) => one.error, cell: (one) => share(one.error) },
      ]}
    />
  );
}

function actions(one: Decision): string {
  const texts = one.actions.map((action) => String((action as Record<string, unknown>).text ?? ""));
  return texts.filter(Boolean).join("; ") || "nothing";
}

function Why({ number }: { number: string }) {
  const again = useSignal(false);
  const live = useLive<Details>(`/decisions/${encodeURIComponent(number)}${again.value ? "?again=true" : ""}`, again.value ? ONCE : WHEN).value;
  return (
    <section class="panel" aria-label={`Decision ${number}`}>
      <header><h2>Decision {number}: why</h2><a class="button" href={here({ open: "" })} aria-label="Close the decision">✕</a></header>
      <Waiting live={live}>
        {(one) => (
          <>
            <Undo one={one} />
            {one.sentences.map((sentence) => <p>{String(sentence)}</p>)}
            <div class="columns">
              <Pairs title="What it saw" values={one.figures} />
              <Compared one={one} />
              <Rows title="What was not done" head={["option", "because"]} rows={one.rejected.map((each) => facts(each, ["option", "reason"]))} />
              <Rows title="Steps" head={["step", "state", "result"]} rows={one.steps.map((each) => facts(each, ["what", "state", "result"]))} />
            </div>
            {one.again ? (
              <p class="banner banner-good">{(one.again as Record<string, unknown>).same ? "● Made again from its record, it is the same." : "▲ Made again from its record, it is another one."}</p>
            ) : (
              <button type="button" onClick={() => (again.value = true)}>Make it again from its record</button>
            )}
          </>
        )}
      </Waiting>
    </section>
  );
}

interface Back {
  text: string;
  method: string;
  path: string;
  body: unknown;
}

/** What a decision has changed can be as it was before; it stays so until it is released. */
function Undo({ one }: { one: Decision }) {
  const done = useSignal<string[]>([]);
  const problem = useSignal<Problem | null>(null);
  const ways = one.actions.map((action) => (action as { undo?: Back | null }).undo).filter((undo): undo is Back => !!undo);
  if (one.outcome !== "done" || !ways.length) return null;
  const undo = async (way: Back) => {
    problem.value = null;
    try {
      await change(way.method, way.path, way.body ?? undefined);
      done.value = [...done.value, way.text];
      changed();
    } catch (error) {
      if (error instanceof Refused) problem.value = error.problem;
    }
  };
  const release = async (way: Back) => {
    await change("POST", way.path.replace(/alternate$/, "release"));
    done.value = done.value.filter((text) => text !== way.text);
    changed();
  };
  return (
    <div class="filters">
      {ways.map((way) =>
        !done.value.includes(way.text) ? (
          <button type="button" onClick={() => void undo(way)}>Undo it: {way.text}</button>
        ) : (
          <span role="status">
            ● {way.text}{way.path.endsWith("alternate") && <>; no policy changes that. <button type="button" onClick={() => void release(way)}>Let policies choose again</button></>}
          </span>
        ),
      )}
      {problem.value && <Faults problem={problem.value} />}
    </div>
  );
}

function facts(each: unknown, names: string[]): string[] {
  return names.map((name) => said((each as Record<string, unknown>)[name]));
}

function said(value: unknown): string {
  if (value == null) return "–";
  if (typeof value === "number") return value.toLocaleString("en", { maximumFractionDigits: 3 });
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function Pairs({ title, values }: { title: string; values: Record<string, unknown> }) {
  return <Rows title={title} head={["figure", "value"]} rows={Object.entries(values).map(([name, value]) => [name.replaceAll("_", " "), said(value)])} />;
}

function Compared({ one }: { one: Details }) {
  const predicted: Record<string, unknown> = one.verified?.predicted ?? one.prediction ?? {};
  const measured: Record<string, unknown> = one.verified?.measured ?? {};
  const rows = Object.keys(predicted).map((name) => [name.replaceAll("_", " "), said(predicted[name]), said(measured[name])]);
  return <Rows title="Predicted and measured" head={["figure", "predicted", "measured"]} rows={rows} />;
}

function Rows({ title, head, rows }: { title: string; head: string[]; rows: string[][] }) {
  if (!rows.length) return null;
  return (
    <Scroll label={title}>
      <table>
        <caption>{title}</caption>
        <thead><tr>{head.map((name) => <th scope="col">{name}</th>)}</tr></thead>
        <tbody>{rows.map((cells) => <tr>{cells.map((cell, index) => (index ? <td>{cell}</td> : <th scope="row">{cell}</th>))}</tr>)}</tbody>
      </table>
    </Scroll>
  );
}
