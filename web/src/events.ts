/**
 * What happens in the engine, as it happens: one stream of events for all tabs of a browser.
 *
 * Browsers open few connections to a host. So one tab, which holds a lock, follows the stream and passes it on; when
 * it is closed another one takes over from the last event. Where there are no locks, each tab follows while it is seen.
 */
import { signal } from "@preact/signals";

export type Topic = "plan" | "decision" | "rates" | "health" | "operation" | "begun" | "lost";

interface Happened {
  topic: Topic;
  data?: unknown;
  id?: string;
}

const TOPICS: Topic[] = ["plan", "decision", "rates", "health", "operation"];
const AGAIN_MS = 2000;

/** Whether events come; while they do not, pages ask now and then. */
export const following = signal(false);

const listeners = new Set<(topic: Topic, data: unknown) => void>();
const others = "BroadcastChannel" in globalThis ? new BroadcastChannel("headgate-events") : undefined;
let source: EventSource | undefined;
let last = "";
let begun = false;

export function listen(listener: (topic: Topic, data: unknown) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Begin to follow; to be called when somebody is signed in. */
export function startEvents(): void {
  if (begun) return;
  begun = true;
  others?.addEventListener("message", (event: MessageEvent<Happened>) => take(event.data));
  if (others && navigator.locks) void navigator.locks.request("headgate-events", () => (open(), new Promise(() => {})));
  else {
    const look = () => (document.hidden ? close() : source ?? open());
    document.addEventListener("visibilitychange", look);
    look();
  }
}

function open(): void {
  const stream = (source = new EventSource(`/v1/events${last ? `?after=${last}` : ""}`));
  stream.onopen = () => announce({ topic: "begun" });
  for (const topic of TOPICS)
    stream.addEventListener(topic, (event: MessageEvent<string>) => announce({ topic, data: JSON.parse(event.data), id: event.lastEventId || undefined }));
  stream.onerror = () => {
    announce({ topic: "lost" });
    if (stream.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    close();
    setTimeout(() => begun && !source && open(), AGAIN_MS);
  };
}

function close(): void {
  source?.close();
  source = undefined;
  following.value = false;
}

function announce(event: Happened): void {
  others?.postMessage(event);
  take(event);
}

function take(event: Happened): void {
  following.value = event.topic !== "lost";
  last = event.id ?? last;
  for (const listener of listeners) listener(event.topic, event.data);
}
