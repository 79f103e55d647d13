/** What the past would have been, and cost, under other policies, at other rates and prices. */
import { useSignal } from "@preact/signals";
import { ask, change, changed, ONCE, Refused, useLive, type Problem, type Schemas, type When } from "../api";
import { count, money, moment, plural, share } from "../format";
import { Chart } from "../parts/chart";
import { Bar, Empty, Faults, Scroll, Waiting } from "../parts/parts";
import { choose, here, param } from "../router";

type Policy = Schemas["PolicyAnswer"];
type Operations = Schemas["OperationsAnswer"];
type Operation = Schemas["OperationAnswer"];
type Facts = Schemas["OperationFacts"];

interface Figures {
  omega: number;
  gamma: number;
  cost: number;
  backlog: number;
}

interface Run extends Figures {
  policy: string;
  changes: number | null;
  series: Record<"hours" | "omega" | "cores" | "cost" | "input_per_s", number[]>;
}

interface Result {
  since: number;
  until: number;
  currency: string;
  rate_factor: number;
  price_factor: number;
  measured: Figures;
  runs: Run[];
  error: { omega: number; cost: number; backlog: number };
}

interface Question {
  policies: string[];
  since: number;
  until: number;
  rate_factor: number;
  price_factor: number;
}

const WHEN: When = { on: ["operation"], leastMs: 500 };
const HOUR_S = 3600;
const SPANS: [string, number][] = [["1", 1], ["6", 6], ["24", 24], ["168", 168]];

export function WhatIfPage() {
  const policy = useLive<Policy>("/policy", ONCE).value;
  const live = useLive<Operations>("/operations", WHEN).value;
  return (
    <>
      <p class="lead">What was recorded, simulated again: under other policies, with more rows, with dearer machines. Nothing is changed.</p>
      <Waiting live={policy}>{(now) => <Form now={now} />}</Waiting>
      {param("open") && <Opened key={param("open")} id={param("open")} />}
      <Waiting live={live}>{(answer) => <List operations={answer.operations} />}</Waiting>
    </>
  );
}

function Form({ now }: { now: Policy }) {
  const problem = useSignal<Problem | null>(null);
  const chosen = (param("policies") || now.policy).split(",").filter(Boolean);
  const pick = (name: string, on: boolean) =>
    choose({ policies: [...chosen.filter((one) => one !== name), ...(on ? [name] : [])].join(",") || undefined });
  const start = async () => {
    problem.value = null;
    const day = param("day") ? Date.parse(`${param("day")}T00:00:00Z`) / 1000 : null;
    const until = day === null ? Date.now() / 1000 : day + 24 * HOUR_S;
    const since = day ?? until - Number(param("hours") || 1) * HOUR_S;
    const factors = { rate_factor: Number(param("rates") || 1), price_factor: Number(param("prices") || 1) };
    try {
      const begun = await change<Facts>("POST", "/what-ifs", { policies: chosen, since, until, ...factors });
      choose({ open: begun.id }, false);
      changed();
    } catch (error) {
      if (error instanceof Refused) problem.value = error.problem;
    }
  };
  return (
    <form class="panel what-if" aria-label="Question" onSubmit={(event) => (event.preventDefault(), void start())}>
      <fieldset>
        <legend>Under which policies</legend>
        {now.known.map((name) => (
          <label><input type="checkbox" checked={chosen.includes(name)} onChange={(event) => pick(name, event.currentTarget.checked)} /> {name}{name === now.policy && <span class="note"> decides now</span>}</label>
        ))}
      </fieldset>
      <div class="filters">
        <label>
          The last
          <select value={param("day") ? "" : param("hours") || "1"} onChange={(event) => choose({ hours: event.currentTarget.value, day: "" })}>
            <option value="">day that is chosen</option>
            {SPANS.map(([value, hours]) => <option value={value}>{hours === 168 ? "week" : plural(hours, "hour")}</option>)}
          </select>
        </label>
        <label>or the day (UTC) <input type="date" value={param("day")} onChange={(event) => choose({ day: event.currentTarget.value })} /></label>
        <Factor name="rates" label="Rates times" />
        <Factor name="prices" label="Prices times" />
        <button type="submit" class="main" disabled={!chosen.length}>Replay it</button>
      </div>
      {problem.value && <Faults problem={problem.value} />}
    </form>
  );
}

function Factor({ name, label }: { name: string; label: string }) {
  return (
    <label>
      {label}
      <input type="number" min="0.01" max="1000" step="any" size={5} value={param(name) || "1"} onChange={(event) => choose({ [name]: event.currentTarget.value === "1" ? "" : event.currentTarget.value })} />
    </label>
  );
}

function asked(facts: Facts): string {
  const question = facts.question as unknown as Question;
  const more = [question.rate_factor !== 1 && `rates × ${question.rate_factor}`, question.price_factor !== 1 && `prices × ${question.price_factor}`];
  return [question.policies.join(", "), ...more].filter(Boolean).join("; ");
}

function List({ operations }: { operations: Facts[] }) {
  if (!operations.length) return <Empty title="Nothing was asked yet"><p>Choose policies and a span of time, then replay it.</p></Empty>;
  return (
    <Scroll label="Replays">
      <table>
        <caption>Replays that are kept</caption>
        <thead><tr><th scope="col">asked</th><th scope="col">by</th><th scope="col">question</th><th scope="col">span</th><th scope="col">state</th></tr></thead>
        <tbody>
          {operations.map((one) => (
            <tr key={one.id} class={one.id === param("open") ? "chosen" : ""}>
              <th scope="row"><a href={here({ open: one.id })}>{moment(one.began, true)}</a></th>
              <td>{one.by}</td>
              <td>{asked(one)}</td>
              <td>{moment((one.question as unknown as Question).since, true)} to {moment((one.question as unknown as Question).until, true)}</td>
              <td>{one.state === "running" ? <Progress one={one} /> : one.state}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Progress({ one }: { one: Facts }) {
  return (
    <span class="with-spark">
      <Bar value={one.progress} label={`${share(one.progress)} ${one.step}`} />
      <button type="button" onClick={() => void ask(`/operations/${one.id}`, { method: "DELETE" }).then(changed)}>Cancel</button>
    </span>
  );
}

function Opened({ id }: { id: string }) {
  const live = useLive<Operation>(`/operations/${encodeURIComponent(id)}`, WHEN).value;
  return (
    <section class="panel" aria-label="Replay">
      <header><h2>Replay</h2><a class="button" href={here({ open: "" })} aria-label="Close the replay">✕</a></header>
      <Waiting live={live}>
        {(one) =>
          one.result ? <Shown result={one.result as unknown as Result} />
          : one.state === "running" ? <p role="status"><Progress one={one} /></p>
          : <p class="banner banner-bad">▲ It was {one.state}{one.problem ? `: ${one.problem.message}` : "."}</p>}
      </Waiting>
    </section>
  );
}

function Shown({ result }: { result: Result }) {
  const longest = result.runs.reduce((one, run) => (run.series.hours.length > one.series.hours.length ? run : one), result.runs[0]!);
  const times = longest.series.hours.map((hours) => result.since + hours * HOUR_S);
  const lines = (name: "cores" | "cost" | "omega") => result.runs.map((run) => ({ label: run.policy, values: run.series[name] }));
  const { error } = result;
  return (
    <>
      <p>
        {moment(result.since, true)} to {moment(result.until > Date.now() / 1000 ? Date.now() / 1000 : result.until, true)}
        {result.rate_factor !== 1 && `; rates × ${result.rate_factor}`}{result.price_factor !== 1 && `; prices × ${result.price_factor}`}.
        <span class="note"> The replay itself is off by {share(error.cost, 1)} of the cost and {error.omega.toFixed(3)} of the throughput: a policy that differs by less is no better and no worse.</span>
      </p>
      <Scroll label="What would have been">
        <table>
          <caption>What was, and what would have been</caption>
          <thead>
            <tr><th scope="col">policy</th><th scope="col" class="number">cost</th><th scope="col" class="number">against as simulated</th><th scope="col" class="number">throughput</th><th scope="col" class="number">value</th><th scope="col" class="number">changes</th><th scope="col" class="number">rows left waiting</th><th scope="col"><span class="unseen">choose</span></th></tr>
          </thead>
          <tbody>
            <Row name="as measured" figures={result.measured} currency={result.currency} />
            {result.runs.map((run, index) => <Row name={run.policy} figures={run} changes={run.changes} currency={result.currency} base={result.runs[0]} choosable={index > 0} />)}
          </tbody>
        </table>
      </Scroll>
      <div class="columns">
        <Chart title="Cost so far" unit={result.currency} times={times} lines={lines("cost")} form={(value) => (value == null ? "–" : count(value, 4))} />
        <Chart title="Cores at work" unit="cores" times={times} lines={lines("cores")} form={(value) => count(value, 1)} />
        <Chart title="Throughput" unit="share of what came" times={times} lines={lines("omega")} form={(value) => count(value, 2)} />
      </div>
    </>
  );
}

interface RowProps {
  name: string;
  figures: Figures;
  currency: string;
  changes?: number | null;
  base?: Figures;
  choosable?: boolean;
}

function Row({ name, figures, currency, changes, base, choosable }: RowProps) {
  const made = useSignal("");
  const less = base && base.cost > 0 ? figures.cost / base.cost - 1 : null;
  const make = async () => {
    try {
      await change("PUT", "/policy", { policy: name });
      made.value = "it decides now";
      changed();
    } catch (error) {
      if (error instanceof Refused) made.value = error.message;
    }
  };
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="number">{money(figures.cost, currency)}</td>
      <td class={`number ${less && less < -0.0005 ? "less" : less && less > 0.0005 ? "more" : ""}`}>{less == null ? "–" : `${less > 0 ? "+" : ""}${(100 * less).toFixed(1)}%`}</td>
      <td class="number">{figures.omega.toFixed(3)}</td>
      <td class="number">{figures.gamma.toFixed(3)}</td>
      <td class="number">{count(changes)}</td>
      <td class="number">{count(figures.backlog)}</td>
      <td>{choosable && (made.value ? <span role="status" class="note">{made.value}</span> : <button type="button" onClick={() => void make()}>Make {name} the policy</button>)}</td>
    </tr>
  );
}
