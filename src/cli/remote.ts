/** Commands that speak to a running daemon over its API. */
import { request } from 'undici';
import { Failure } from '../kernel/errors.ts';
import { jsonText, tryParseJson } from '../kernel/json.ts';

export interface Remote {
  url?: string;
  key?: string;
}

/** Sends one request. @throws Failure `bad_setting` with what the daemon said and what to do */
export async function callDaemon(
  remote: Remote,
  call: { method: 'GET' | 'POST'; path: string; body?: unknown; accept?: string },
): Promise<string> {
  const { url = 'http://127.0.0.1:8080', key } = remote;
  if (!key) throw new Failure('bad_setting', 'a key is needed: --key thk_… or TALLYHOOK_KEY');
  const answer = await request(`${url.replace(/\/+$/, '')}${call.path}`, {
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
      `no daemon answers at ${url}; start it, or name it with --url`,
    );
  });
  const text = await answer.body.text();
  if (answer.statusCode < 300) return text;
  const problem = tryParseJson(text) as
    | { code?: string; title?: string; detail?: string }
    | undefined;
  const words = [problem?.title, problem?.detail].filter(Boolean).join(': ');
  throw new Failure(
    'bad_setting',
    `the daemon answered ${answer.statusCode} ${problem?.code ?? ''} ${words}`.trim(),
  );
}
