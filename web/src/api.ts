/** Requests to the public API, and values that are kept current while a page shows them. */
import { signal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { components } from "./api-types";
import { following, listen, type Topic } from "./events";

export type Schemas = components["schemas"];
export type Problem = Schemas["ProblemDocument"];

export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

export const signedOut = signal(false);
export const connection = signal<"live" | "lost">("live");

export async function ask<T>(path: string, options: RequestInit = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/v1${path}`, { credentials: "same-origin", ...options });
  } catch (error) {
    if ((error as Error).name !== "AbortError") connection.value = "lost";
    throw error;
  }
  connection.value = "live";
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  if (response.status === 401) signedOut.value = true;
  throw new Refused(await problemOf(response));
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem;
  } catch {
    const detail = `The server answered ${response.status}.`;
    return { type: "", title: "", status: response.status, detail, condition: "", parameters: {}, errors: [] };
  }
}

/** A change; sent again with the same id it is made once. */
export function change<T>(method: string, path: string, body?: unknown, headers: HeadersInit = {}): Promise<T> {
  const id = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16)).join("-");
  return ask<T>(path, {
    method,
    headers: { "Content-Type": "application/json", "Idempotency-Key": id, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export interface Live<T> {
  data?: T;
  problem?: Problem;
  /** Of which address the data are. */
  path?: string;
}

/** When values are asked for again: after which events, and how soon at most. */
export interface When {
  on: readonly Topic[];
  leastMs?: number;
}

export const ONCE: When = { on: [] };
const ALWAYS: When = { on: ["rates", "plan", "health"] };
const WITHOUT_EVENTS_MS = 10000;
const SPREAD_MS = 300;

/** What a route answers, asked again when something has happened while the page can be seen. */
export function useLive<T>(path: string | null, when: When = ALWAYS): Signal<Live<T>> {
  const state = useRef(signal<Live<T>>({})).current;
  const topics = when.on.join();
  const leastMs = when.leastMs ?? 0;
  useEffect(() => {
    if (path === null) return;
    let ended = false;
    let timer = 0;
    let asked = 0;
    const controller = new AbortController();
    const look = async () => {
      timer = 0;
      asked = Date.now();
      try {
        const data = await ask<T>(path, { signal: controller.signal });
        if (!ended) state.value = { data, path };
      } catch (error) {
        if (!ended && error instanceof Refused) state.value = { problem: error.problem, path };
      }
    };
    const soon = (waitMs: number) => {
      // Many pages hear of an event at once; they do not ask in the same millisecond.
      if (!timer && !ended) timer = setTimeout(() => (document.hidden ? ((timer = 0), (missed = true)) : void look()), waitMs) as unknown as number;
    };
    let missed = false;
    const seen = () => {
      if (!document.hidden && missed) ((missed = false), soon(0));
    };
    const now = () => {
      clearTimeout(timer);
      void look();
    };
    void look();
    const stop = topics
      ? listen((topic) => {
          if (topic === "begun" || topics.split(",").includes(topic)) soon(Math.max(asked + leastMs - Date.now(), 0) + Math.random() * SPREAD_MS);
        })
      : () => {};
    const without = topics ? setInterval(() => !following.value && soon(0), Math.max(WITHOUT_EVENTS_MS, leastMs)) : 0;
    document.addEventListener("visibilitychange", seen);
    addEventListener("headgate-changed", now);
    return () => {
      ended = true;
      clearTimeout(timer);
      clearInterval(without);
      stop();
      controller.abort();
      document.removeEventListener("visibilitychange", seen);
      removeEventListener("headgate-changed", now);
    };
  }, [path, topics, leastMs]);
  return state;
}

/** Something has changed: what is shown is asked for again at once. */
export function changed(): void {
  dispatchEvent(new Event("headgate-changed"));
}
