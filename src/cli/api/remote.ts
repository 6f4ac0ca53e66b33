/** Requests to a running daemon. Their client is loaded with the first one. */
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { Failure } from '../../kernel/errors.ts';
import { jsonText, parseJson, tryParseJson } from '../../kernel/json.ts';
import { faultText, tlsFaultOf } from '../../resources/faults.ts';

/** The options of a command that takes a key. */
export interface GivenKey {
  key?: string;
  /** The file of the key. */
  keyFile?: string;
}

/** The options of every command that calls a daemon. */
export interface Remote extends GivenKey {
  url: string;
}

const KEY_OPTIONS = '--key, --key-file or TALLYHOOK_KEY';

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

interface Call {
  method: Method;
  path: string;
  body?: unknown;
  accept?: string;
  headers?: Record<string, string>;
}

/** Returns the JSON of a 2xx response, empty without a body. @throws Failure `bad_setting` */
export async function callDaemon(remote: Remote, call: Call): Promise<string> {
  return jsonOf(remote, await bytesFromDaemon(remote, call));
}

/** Sends a file as it is read; returns the JSON of the answer. @throws Failure `bad_setting` */
export async function sendFile(remote: Remote, path: string, file: Readable): Promise<string> {
  const sent = { path, type: 'application/octet-stream', body: file };
  return jsonOf(remote, await bytesOf(remote, { method: 'POST', ...sent }));
}

function jsonOf(remote: Remote, { bytes, type }: { bytes: Buffer; type: string }): string {
  if (bytes.length > 0 && !type.startsWith('application/json')) throw noDaemonAt(remote);
  return bytes.toString();
}

function noDaemonAt({ url }: Remote): Failure {
  return new Failure('bad_setting', `what answers at ${url} is not a daemon`);
}

function brokeOff({ url }: Remote): Failure {
  return new Failure('bad_setting', `the answer of ${url} broke off`);
}

/** The body of a 2xx response and its type. @throws Failure `bad_setting` */
export function bytesFromDaemon(remote: Remote, call: Call) {
  const { body, ...rest } = call;
  const sent = body === undefined ? {} : { type: 'application/json', body: jsonText(body) };
  return bytesOf(remote, { ...rest, ...sent });
}

async function bytesOf(remote: Remote, sent: Sent) {
  const answer = await answerOf(remote, sent);
  const bytes = await answer.body.arrayBuffer().catch(() => {
    throw brokeOff(remote);
  });
  return { bytes: Buffer.from(bytes), type: String(answer.headers['content-type']) };
}

/**
 * Sends a file as it is read; returns the lines of the answer, parsed, as they arrive.
 * @throws Failure `bad_setting` with the reason
 */
export async function* streamToDaemon<Line>(
  remote: Remote,
  sent: { path: string; type: string; body: Readable },
): AsyncGenerator<Line> {
  const { body: input } = await answerOf(remote, { method: 'POST', ...sent });
  try {
    for await (const line of createInterface({ input })) {
      // The daemon says that it goes on.
      if (line === '') continue;
      const read = tryParseJson(line);
      if (read === undefined) throw noDaemonAt(remote);
      yield read as Line;
    }
  } catch (error) {
    throw error instanceof Failure ? error : brokeOff(remote);
  }
}

/** The body of a response as it arrives. @throws Failure `bad_setting` with the reason */
export async function readDaemon(
  remote: Remote,
  call: { path: string; accept: string; headers: Record<string, string> },
): Promise<Readable> {
  return (await answerOf(remote, { method: 'GET', ...call })).body;
}

/** A stream of a million lines may take so long. */
const TIMEOUT_MS = 600_000;

type Sent = Omit<Call, 'body'> & { type?: string; body?: string | Readable };

/** Whether a command was given a key, itself or in a file. */
export function hasKey({ key, keyFile }: GivenKey): boolean {
  return Boolean(key || keyFile);
}

/** @throws Failure `bad_setting` without a key, and for a file that cannot be read */
export async function keyOf({ key, keyFile }: GivenKey): Promise<string> {
  if (keyFile) {
    const { readSecret } = await import('../../daemon/daemon.ts');
    return readSecret('TALLYHOOK_KEY_FILE', keyFile);
  }
  if (key) return key;
  throw new Failure('bad_setting', `an API key is required: ${KEY_OPTIONS}`);
}

async function answerOf(remote: Remote, { type, body, ...call }: Sent) {
  const { url } = remote;
  const key = await keyOf(remote);
  const parsed = URL.parse(url);
  if (!parsed)
    throw new Failure('bad_setting', `${url}: expected an address such as http://127.0.0.1:8080`);
  if (parsed.username || parsed.password)
    throw new Failure(
      'bad_setting',
      `the address of the daemon has a login; remove it and use ${KEY_OPTIONS}`,
    );
  const timeoutMs = body instanceof Readable ? TIMEOUT_MS : 120_000;
  const { request } = await import('undici');
  const response = await request(`${url.replace(/\/+$/, '')}${call.path}`, {
    method: call.method,
    headers: {
      authorization: `Bearer ${key}`,
      accept: call.accept ?? 'application/json',
      ...call.headers,
      ...(type === undefined ? {} : { 'content-type': type }),
    },
    body: body ?? null,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  }).catch((error: { code?: string }) => {
    const fault = tlsFaultOf(error);
    if (fault) throw new Failure('bad_setting', `${url}: ${faultText(fault)}`);
    const isCut = body instanceof Readable && CUT.test(error.code ?? '');
    throw new Failure('bad_setting', isCut ? cutUpload(url) : noDaemon(url));
  });
  if (response.statusCode < 300) return response;
  const problem = tryParseJson(await response.body.text().catch(() => '')) as
    | { code?: string; title?: string; detail?: string }
    | undefined;
  const { statusCode } = response;
  if (problem?.code === undefined) throw new Failure('bad_setting', ofProxy(url, statusCode));
  const explanation = [problem.title, problem.detail].filter(Boolean).join(': ');
  throw new Failure(
    'bad_setting',
    `the daemon answered ${statusCode} ${problem.code} ${explanation}`.trim(),
  );
}

function noDaemon(url: string): string {
  return `no daemon answers at ${url}; start it, or set --url or TALLYHOOK_URL`;
}

/** A connection that ended, after it was made. */
const CUT = /^(EPIPE|ECONNRESET|UND_ERR_SOCKET)$/;
const LARGER = 'the upload is larger than it allows; raise that (nginx: client_max_body_size)';

function cutUpload(url: string): string {
  return `${url} ended the connection during the upload; if a proxy is there, ${LARGER}`;
}

/** What the answer of a proxy means; the problems of a daemon have a code. */
const PROXY_ANSWERS: Record<number, string> = {
  413: LARGER,
  502: 'it does not reach the daemon',
  503: 'it has no daemon to send to',
  504: 'it waited too long for the daemon (nginx: proxy_read_timeout)',
};

function ofProxy(url: string, status: number): string {
  const meaning = PROXY_ANSWERS[status];
  return meaning
    ? `a proxy at ${url} answered ${status}: ${meaning}`
    : `${url} answered ${status}, and not as a daemon does`;
}

/** A path with the query of what is given; a list is one parameter, repeated. */
export function withQuery(path: string, given: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given))
    for (const one of value === undefined ? [] : [value].flat()) query.append(name, String(one));
  return query.size === 0 ? path : `${path}?${query}`;
}

/** Every row of a list. @param path with its query, if any */
export async function listAll<Row>(remote: Remote, path: string): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const page of pagesOf<Row>(remote, path)) rows.push(...page);
  return rows;
}

/**
 * The pages of a list. The feed of events has always a cursor: it ends where that stays.
 * @param path with its query, if any
 */
export async function* pagesOf<Row>(remote: Remote, path: string): AsyncGenerator<Row[]> {
  const query = `${path}${path.includes('?') ? '&' : '?'}limit=500`;
  let cursor: string | null = '';
  let before: string | null;
  do {
    const next: string = `${query}${cursor && `&cursor=${cursor}`}`;
    const page = parseJson(await callDaemon(remote, { method: 'GET', path: next })) as {
      data: Row[];
      next_cursor: string | null;
    };
    yield page.data;
    before = cursor;
    cursor = page.next_cursor;
  } while (cursor !== null && cursor !== before);
}
