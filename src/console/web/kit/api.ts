/** Calls the API with the session of this browser, and hooks that load what views show. */
import { type Scope, seesOnlyOwn } from '../../../resources/admin/key.ts';
import { useEffect, useLayoutEffect, useRef, useState } from './html.ts';
import { BASE_PATH, insidePath, meta } from './shell.ts';

/** What the API answered instead of data, or that it did not answer. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  /** What is wrong with members of the request, by their first name. */
  readonly fields: Readonly<Record<string, string>>;
  constructor(status: number, code: string, text: string, fields: Record<string, string> = {}) {
    super(text);
    this.status = status;
    this.code = code;
    this.fields = fields;
  }
}

/** Who is signed in, and until when. */
export interface Session {
  owner: string;
  scopes: Scope[];
  expires_at: string;
  csrf_token: string;
  /** Of the days of reports and periods. */
  time_zone: string;
}

/** A cookie that this code cannot read has the key; all tabs have it. */
let session: Session | undefined;

/** A subscriber that came by a portal link sees only endpoints. */
export const isSubscriber = (): boolean => session !== undefined && seesOnlyOwn(session.scopes);
export const sessionOf = (): Session | undefined => session;
export const isOwn = (owner: string | null): boolean => owner === session?.owner;

/** Whether the key may do what needs one of these scopes; subscribers see only what they may do. */
export function may(...scopes: readonly Scope[]): boolean {
  const enough = ['admin' as const, ...scopes];
  return isSubscriber() || enough.some((one) => session?.scopes.includes(one));
}

/**
 * Asks who is signed in, and shows the address that was asked for before a sign-in.
 * @throws Problem when the daemon cannot say it
 */
export async function loadSession(): Promise<void> {
  if (insidePath(location.pathname)?.startsWith('/sign-in'))
    history.replaceState(null, '', BASE_PATH + (meta('to') ?? '/'));
  session = await call<Session | undefined>('GET', '/session');
}

/** @throws Problem */
export async function signIn(key: string): Promise<void> {
  session = await call<Session>('POST', '/session', { key });
}

/** Ends the session in all tabs. @throws Problem; then it goes on */
export async function signOut(): Promise<void> {
  await send('DELETE', '/session');
  endSession('');
}

/** Called when the session has ended; set by the frame. */
let onSessionEnd: (why: string) => void = () => {};
export function whenSessionEnds(act: (why: string) => void): void {
  onSessionEnd = act;
}
function endSession(why: string): void {
  session = undefined;
  onSessionEnd(why);
}

/** The raw response. @param body a blob with its type, or what becomes JSON. @throws Problem */
export async function send(
  method: string,
  path: string,
  body?: unknown,
  signal: AbortSignal | null = null,
): Promise<Response> {
  const headers: Record<string, string> = {};
  if (method !== 'GET') reading.clear();
  if (method !== 'GET' && session) headers['tallyhook-csrf'] = session.csrf_token;
  const isBlob = body instanceof Blob;
  if (body !== undefined) headers['content-type'] = isBlob ? body.type : 'application/json';
  const sent = body === undefined ? null : isBlob ? body : JSON.stringify(body);
  const answer = await fetch(BASE_PATH + path, { method, headers, body: sent, signal }).catch(
    () => {
      throw new Problem(0, 'no_answer', 'The daemon does not respond.');
    },
  );
  if (method !== 'GET') reading.clear();
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  const why = problem.detail ?? problem.title ?? `HTTP status ${answer.status}`;
  if (answer.status === 401 && path !== '/session') endSession(why);
  const errors: { path: string; message: string }[] = problem.errors ?? [];
  const fields = Object.fromEntries(
    errors.map(({ path, message }) => [path.split('.')[0] ?? '', message]),
  );
  throw new Problem(answer.status, problem.code ?? '', why, fields);
}

/** What the API answers: JSON, a text such as a page, or nothing. @throws Problem */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const answer = await send(method, path, body, signal);
  if (answer.status === 204) return undefined as T;
  const isJson = answer.headers.get('content-type')?.includes('json');
  return isJson ? answer.json() : ((await answer.text()) as T);
}

/** Requests by their path, until shortly after their answer; none was sent before a change. */
const reading = new Map<string, Promise<unknown>>();
/** Parts of a page are drawn one after the other. */
const SHARED_MS = 300;

/** Parts of the page that ask for a path at the same time share the answer. @throws Problem */
function read<T>(path: string): Promise<T> {
  const found = reading.get(path);
  if (found) return found as Promise<T>;
  const asked = call<T>('GET', path);
  reading.set(path, asked);
  const forget = () => {
    if (reading.get(path) === asked) reading.delete(path);
  };
  asked.then(() => pause(SHARED_MS).then(forget), forget);
  return asked;
}

/** Parts of a view that have nothing to show yet. */
const waiting = new Set<object>();
/** Shows the view. The frame sets it. */
let onWhole: () => void = () => {};
/** Sets what is called once no part of the view waits, at once if none does. */
export function whenWhole(act: () => void): void {
  onWhole = act;
  if (waiting.size === 0) act();
}

/**
 * The view is shown once none of its parts waits. A part is known as it is drawn, and no longer
 * counted after that is done: so what it leads to is known by then.
 */
export function useWaiting(isWaiting: boolean): void {
  const part = useRef({}).current;
  if (isWaiting) waiting.add(part);
  const end = () => {
    waiting.delete(part);
    if (waiting.size === 0) onWhole();
  };
  useLayoutEffect(() => {
    if (!isWaiting) end();
  }, [isWaiting]);
  useLayoutEffect(() => end, []);
}

/** A path with the parameters that have a value. */
export function withQuery(path: string, query: Record<string, string | null | undefined>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
}

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  reload: () => void;
}

/**
 * Loads a path, again when it changes, and every so many milliseconds while the tab is shown.
 * @param isAside the view does not wait for it
 */
export function useData<T>(path: string, everyMs?: number, isAside = false): Loaded<T> {
  const [state, setState] = useState<{ path: string; data?: T; problem?: Problem }>({ path });
  const newest = useRef(0);
  const load = async () => {
    newest.current += 1;
    const n = newest.current;
    try {
      const data = await read<T>(path);
      if (n === newest.current) setState({ path, data });
    } catch (error) {
      const problem = problemOf(error);
      if (n === newest.current)
        setState((old) => ({ path, problem, ...(old.path === path && old.data ? old : {}) }));
    }
  };
  // At once, not after the next picture.
  useLayoutEffect(() => {
    load();
    if (everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) load();
    }, everyMs);
    return () => clearInterval(timer);
  }, [path, everyMs]);
  const { data, problem } = state.path === path ? state : {};
  useWaiting(!isAside && data === undefined && problem === undefined);
  return { data, problem, reload: load };
}

export interface Page<T> {
  data: T[];
  next_cursor: string | null;
}
export interface List<T> {
  rows: T[] | undefined;
  problem: Problem | undefined;
  /** How many rows have come since, and whether rows have left; `reload` shows it. */
  fresh: number;
  isChanged: boolean;
  /** Loads the next page; undefined on the last one. */
  more: (() => void) | undefined;
  reload: () => void;
}

/** How often a list that is shown is read again. */
const LIVE_MS = 10_000;

const idOf = (row: object) => (row as { id?: string }).id;

/**
 * A list of the API, page after page. While the tab is shown, rows that are listed follow their
 * changes; new ones are counted, and do not move what is being read.
 * @param keyOf what a row is found again by; rows without it are not followed
 */
export function useList<T extends object>(
  path: string,
  keyOf: (row: T) => string | undefined = idOf,
): List<T> {
  type State = {
    path: string;
    rows?: T[];
    cursor: string | null;
    problem?: Problem;
    fresh?: number;
    isChanged?: boolean;
  };
  const [state, setState] = useState<State>({ path, cursor: null });
  const newest = useRef(0);
  const load = async (cursor: string | null, before: T[]) => {
    newest.current += 1;
    const n = newest.current;
    const join = path.includes('?') ? '&' : '?';
    const from = cursor === null ? path : `${path}${join}cursor=${encodeURIComponent(cursor)}`;
    try {
      const page = await read<Page<T>>(from);
      if (n === newest.current)
        setState({ path, rows: [...before, ...page.data], cursor: page.next_cursor });
    } catch (error) {
      const problem = problemOf(error);
      if (n === newest.current)
        setState((old) => ({ ...(old.path === path ? old : { cursor: null }), path, problem }));
    }
  };
  const reload = () => {
    load(null, []);
  };
  useLayoutEffect(reload, [path]);
  const shown: State = state.path === path ? state : { path, cursor: null };
  const { rows, cursor, problem, fresh = 0, isChanged = false } = shown;
  useWaiting(rows === undefined && problem === undefined);
  const isFollowed = rows?.every((row) => keyOf(row) !== undefined) ?? false;
  useEffect(() => {
    if (!isFollowed) return;
    let isAsking = false;
    const follow = async () => {
      if (document.hidden || isAsking) return;
      isAsking = true;
      const n = newest.current;
      const page = await read<Page<T>>(path).catch(() => undefined);
      isAsking = false;
      if (page && n === newest.current) setState((old) => withChanges(old, page, keyOf));
    };
    const timer = setInterval(follow, LIVE_MS);
    return () => clearInterval(timer);
  }, [path, isFollowed]);
  const more = cursor && rows ? () => load(cursor, rows) : undefined;
  return { rows, problem, fresh, isChanged, more, reload };
}

/**
 * With what the first page shows now. Rows before the first known one are new, and all unknown ones
 * if every row was listed; another unknown one has moved up, because one that was listed has left,
 * such as a filter by its state.
 */
function withChanges<T, S extends { rows?: T[]; cursor: string | null }>(
  old: S,
  { data, next_cursor: next }: Page<T>,
  keyOf: (row: T) => string | undefined,
): S {
  if (!old.rows) return old;
  const now = new Map(data.map((row) => [keyOf(row), row]));
  const known = new Set(old.rows.map(keyOf));
  const isNew = data.map((row) => !known.has(keyOf(row)));
  const first = isNew.indexOf(false);
  const before = first === -1 ? data.length : first;
  const fresh = old.cursor === null ? isNew.filter(Boolean).length : before;
  const stillThere = next === null ? old.rows : old.rows.slice(0, data.length - before);
  const rows = old.rows.map((row) => now.get(keyOf(row)) ?? row);
  return { ...old, rows, fresh, isChanged: stillThere.some((row) => !now.has(keyOf(row))) };
}

export function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, 'fault', String(error));
}

/** Waits before something is tried again. */
export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
