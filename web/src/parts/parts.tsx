/** Small things that all pages use. */
import type { ComponentChildren } from "preact";
import type { Live, Problem } from "../api";
import { href } from "../router";
import { colour, initials } from "../teams";

const SHAPES: Record<string, string> = { running: "●", degraded: "▲", paused: "❚❚", throttled: "◆" };

/** A state in words and shape, not by colour alone. */
export function State({ state }: { state: string }) {
  return (
    <span class={`state state-${state}`}>
      <span aria-hidden="true">{SHAPES[state] ?? "■"}</span> {state}
    </span>
  );
}

export function Team({ owner }: { owner: string }) {
  return (
    <span class="team" style={{ "--team": colour(owner) }}>
      <span class="team-mark" aria-hidden="true">{initials(owner)}</span>
      {owner}
    </span>
  );
}

/** The initials of several teams in little room; their names are there for who cannot see colours. */
export function Teams({ owners }: { owners: readonly string[] }) {
  return (
    <span class="marks-only">
      {owners.slice(0, 6).map((owner) => (
        <span class="team" style={{ "--team": colour(owner) }} title={owner}>
          <span class="team-mark" aria-hidden="true">{initials(owner)}</span>
          <span class="unseen">{owner}</span>
        </span>
      ))}
      {owners.length > 6 && <span class="note">+{owners.length - 6}</span>}
    </span>
  );
}

export function Card({ title, children, note }: { title: string; children: ComponentChildren; note?: ComponentChildren }) {
  return (
    <div class="card">
      <h3>{title}</h3>
      <p class="figure">{children}</p>
      {note !== undefined && <p class="note">{note}</p>}
    </div>
  );
}

/** A table that scrolls by itself, also by keyboard. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

export function Faults({ problem }: { problem: Problem }) {
  return (
    <div class="problem" role="alert">
      <strong>{problem.title || "Refused"}</strong>
      {problem.errors.length ? (
        <ul>
          {problem.errors.map((fault) => (
            <li>
              {fault.line != null && <span class="line">line {fault.line}</span>} {fault.task && <code>{fault.task}</code>}{" "}
              {fault.message}
              {fault.expected && <span class="note"> Expected {fault.expected}.</span>}
              {fault.nearest && <span class="note"> Did you mean {fault.nearest}?</span>}
            </li>
          ))}
        </ul>
      ) : (
        <p>{problem.detail}</p>
      )}
    </div>
  );
}

/** What a page shows before there is something to show. */
export function Waiting<T>({ live, children }: { live: Live<T>; children: (data: T) => ComponentChildren }) {
  if (live.data !== undefined) return <>{children(live.data)}</>;
  if (live.problem) return <Faults problem={live.problem} />;
  return <p class="note" role="status">Asking the engine…</p>;
}

export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A share as a bar with its number beside it. */
export function Bar({ value, label, bad }: { value: number | null | undefined; label: string; bad?: boolean }) {
  const width = Math.max(0, Math.min(1, value ?? 0)) * 100;
  return (
    <span class={`bar${bad ? " bar-bad" : ""}`}>
      <span class="bar-fill" style={{ width: `${width}%` }} />
      <span class="bar-label">{label}</span>
    </span>
  );
}

export function FlowLink({ name }: { name: string }) {
  return <a href={href("/graph", { select: name })}>{name}</a>;
}

export function TaskLink({ name, children }: { name: string; children?: ComponentChildren }) {
  const flow = name.split(".")[0]!;
  return <a href={href("/graph", { select: flow, node: name })}>{children ?? name}</a>;
}
