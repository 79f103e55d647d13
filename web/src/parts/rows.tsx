/** Live rows of a task: some of them, about once a second, for as long as somebody looks. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { moment } from "../format";
import { Scroll } from "./parts";

interface Sample {
  at: number;
  rows: unknown[];
}

const MOST = 12;

export function LiveRows({ path, task }: { path: string; task: string }) {
  const open = useSignal(false);
  return (
    <details onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>Live rows</summary>
      {open.value && <Rows path={path} task={task} />}
    </details>
  );
}

function Rows({ path, task }: { path: string; task: string }) {
  const sample = useSignal<Sample | null>(null);
  const refused = useSignal(false);
  const held = useSignal(false);
  useEffect(() => {
    const stream = new EventSource(`/v1${path}/rows`);
    stream.addEventListener("rows", (event: MessageEvent<string>) => {
      if (!held.value) sample.value = JSON.parse(event.data) as Sample;
    });
    stream.onerror = () => (refused.value = stream.readyState === EventSource.CLOSED);
    stream.onopen = () => (refused.value = false);
    return () => stream.close();
  }, [path]);
  if (refused.value) return <p class="note">Only members of its teams and operators may see rows.</p>;
  if (!sample.value) return <p class="note" role="status">Waiting for the next micro-batch…</p>;
  const rows = sample.value.rows.slice(0, MOST);
  const names = [...new Set(rows.flatMap((row) => (typeof row === "object" && row ? Object.keys(row) : ["row"])))];
  return (
    <>
      <p class="note">
        {rows.length} rows of {moment(sample.value.at)} <button type="button" aria-pressed={held.value} onClick={() => (held.value = !held.value)}>{held.value ? "Go on" : "Hold"}</button>
      </p>
      <Scroll label={`Live rows of ${task}`}>
        <table class="rows">
          <thead><tr>{names.map((name) => <th scope="col">{name}</th>)}</tr></thead>
          <tbody>{rows.map((row) => <tr>{names.map((name) => <td>{cell(row, name)}</td>)}</tr>)}</tbody>
        </table>
      </Scroll>
    </>
  );
}

/** A value of a row as text. */
export function cell(record: unknown, name: string): string {
  const value = typeof record === "object" && record ? (record as Record<string, unknown>)[name] : record;
  return value == null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value);
}
