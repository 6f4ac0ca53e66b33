/** Requests to a running daemon, and the commands that send only one or two of them. */
import { writeFile } from 'node:fs/promises';
import { request } from 'undici';
import { Failure } from '../kernel/errors.ts';
import { jsonText, parseJson, tryParseJson } from '../kernel/json.ts';
import { printLine } from '../kernel/log.ts';
import { FORMATS, type ReportFormat } from '../reports/reports.ts';

/** The options of every command that calls a daemon. */
export interface Remote {
  url: string;
  key?: string;
}

interface Call {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  body?: unknown;
  accept?: string;
}

/** Returns the body of a 2xx response. @throws Failure `bad_setting` with the reason */
export async function callDaemon(remote: Remote, call: Call): Promise<string> {
  return (await bytesFromDaemon(remote, call)).toString();
}

async function bytesFromDaemon({ url, key }: Remote, call: Call): Promise<Buffer> {
  if (!key) throw new Failure('bad_setting', 'an API key is required: --key or TALLYHOOK_KEY');
  const response = await request(`${url.replace(/\/+$/, '')}${call.path}`, {
    method: call.method,
    headers: {
      authorization: `Bearer ${key}`,
      accept: call.accept ?? 'application/json',
      ...(call.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: call.body === undefined ? null : jsonText(call.body),
    headersTimeout: 120_000,
    bodyTimeout: 120_000,
  }).catch(() => {
    throw new Failure(
      'bad_setting',
      `no daemon answers at ${url}; start it, or set --url or TALLYHOOK_URL`,
    );
  });
  const bytes = Buffer.from(await response.body.arrayBuffer());
  if (response.statusCode < 300) return bytes;
  const problem = tryParseJson(bytes.toString()) as
    | { code?: string; title?: string; detail?: string }
    | undefined;
  const explanation = [problem?.title, problem?.detail].filter(Boolean).join(': ');
  throw new Failure(
    'bad_setting',
    `the daemon answered ${response.statusCode} ${problem?.code ?? ''} ${explanation}`.trim(),
  );
}

/** Every row of a list. @param path with its query, if any */
export async function listAll<Row>(remote: Remote, path: string): Promise<Row[]> {
  const rows: Row[] = [];
  const query = `${path}${path.includes('?') ? '&' : '?'}limit=500`;
  for (let cursor: string | null = ''; cursor !== null; ) {
    const next = `${query}${cursor && `&cursor=${cursor}`}`;
    const page = JSON.parse(await callDaemon(remote, { method: 'GET', path: next })) as {
      data: Row[];
      next_cursor: string | null;
    };
    rows.push(...page.data);
    cursor = page.next_cursor;
  }
  return rows;
}

export async function setFreeze(
  action: 'freeze' | 'unfreeze',
  options: Remote & { reason: string; json?: true },
): Promise<number> {
  const text = await callDaemon(options, {
    method: 'POST',
    path: `/api/${action}`,
    body: { reason: options.reason },
  });
  const freeze = parseJson(text) as { frozen_at: string; frozen_by: string; reason: string };
  const since = `${freeze.frozen_at} by ${freeze.frozen_by}: ${freeze.reason}`;
  const result =
    action === 'freeze'
      ? `All writes are frozen since ${since}`
      : `Writes are allowed again; they were frozen since ${since}`;
  printLine(options.json ? text : result);
  return 0;
}

export async function clearDeadlines(
  options: Remote & { reason: string; json?: true },
): Promise<number> {
  const { reason, json } = options;
  const path = '/api/deadlines/clear';
  const text = await callDaemon(options, { method: 'POST', path, body: { reason } });
  printLine(json ? text : 'The deadlines of the service are removed; requests are sent again');
  return 0;
}

export async function createReport(
  options: Remote & { from: string; to: string; format: ReportFormat; out?: string },
): Promise<number> {
  const { from, to, format, out } = options;
  const { isText, extension } = FORMATS[format];
  if (!isText && !out)
    throw new Failure('bad_setting', `${format} needs a file: --out report.${extension}`);
  const created = await callDaemon(options, {
    method: 'POST',
    path: '/api/reports',
    body: { kind: 'reconciliation', from, to },
  });
  const { id } = parseJson(created) as { id: string };
  const report = await bytesFromDaemon(options, {
    method: 'GET',
    path: `/api/reports/${id}?format=${encodeURIComponent(format)}`,
    accept: '*/*',
  });
  if (!out) printLine(report.toString());
  else
    await writeFile(out, report).catch(() => {
      throw new Failure('bad_setting', `${out} cannot be written; the report is ${id}`);
    });
  return 0;
}

export async function addWatch(
  kind: string,
  names: string[],
  options: Remote & { json?: true },
): Promise<number> {
  const body = watchBody(kind, names);
  const text = await callDaemon(options, { method: 'POST', path: '/api/watches', body });
  const { id } = parseJson(text) as { id?: string };
  printLine(options.json ? text : `Watching ${kind} ${names.join(' ')} as ${id}`);
  return 0;
}

function watchBody(kind: string, [first, second]: string[]): object {
  if (kind === 'wallet') return { kind, addr: first };
  if (kind === 'contract') return { kind, contract_id: first };
  if (kind === 'token' && second !== undefined)
    return { kind, contract_id: first, token_id: second };
  throw new Failure(
    'bad_setting',
    'usage: watch wallet <addr>, watch contract <id>, or watch token <contract id> <token id>',
  );
}
