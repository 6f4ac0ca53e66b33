/** The content security of the console pages. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { makeConsole } from '../../src/console/console.ts';

const REPORT = '/reports/rep_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const OPERATION = '/operations/op_0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';

describe.each(['/', '/operations', OPERATION, REPORT])('The page %s', (path) => {
  const load = async () => {
    const answer = await makeConsole().request(path);
    expect(answer.status).toBe(200);
    const policy = answer.headers.get('content-security-policy') ?? '';
    return { page: await answer.text(), policy: policy.split('; ') };
  };

  it('The policy allows only the script of the page, by hash', async () => {
    const { page, policy } = await load();
    const scripts = [...page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)];
    expect(scripts).toHaveLength(1);
    expect(policy).toContain(`script-src ${hashOf(scripts[0]?.[2] ?? '')}`);
    for (const rule of [
      "default-src 'none'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
      expect(policy).toContain(rule);
  });

  it('The markup loads no other file and has no event handlers', async () => {
    const { page } = await load();
    expect(page).not.toMatch(/https?:\/\//);
    expect(page).not.toMatch(/\son\w+=|javascript:/i);
    expect(page).not.toContain('{{');
  });

  it('The script parses and writes no markup', async () => {
    const { page } = await load();
    const script = /<script>([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '';
    expect(() => new Function(script)).not.toThrow();
    expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval/);
  });
});

it('The policy of the start page allows its style by hash', async () => {
  const answer = await makeConsole().request('/');
  const style = /<style>([\s\S]*?)<\/style>/.exec(await answer.text())?.[1] ?? '';
  expect(answer.headers.get('content-security-policy')).toContain(`style-src ${hashOf(style)}`);
});

it('The frame of a report is sandboxed', async () => {
  const page = await (await makeConsole().request(REPORT)).text();
  expect(page).toMatch(/<iframe[^>]* sandbox=""/);
});

it('A page of a report or operation requires a valid id', async () => {
  expect((await makeConsole().request('/operations/op_1')).status).toBe(404);
  expect((await makeConsole().request('/reports/rep_1')).status).toBe(404);
});
