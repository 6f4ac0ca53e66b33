/** `tallyhook setup`: the logins of an external Postgres, as SQL to read or run at once. */
import { reach } from '../../db/access/reach.ts';
import { LOGINS, runSteps, setupSteps } from '../../db/access/setup.ts';
import { Failure } from '../../kernel/errors.ts';
import { printLine } from '../../kernel/log.ts';
import { systemRandom } from '../../kernel/random.ts';

export async function runSetup(text: string, options: { run?: true }): Promise<number> {
  const url = parse(text);
  const passwords = Object.fromEntries(
    LOGINS.map((login) => [login, Buffer.from(systemRandom.bytes(24)).toString('base64url')]),
  ) as Record<(typeof LOGINS)[number], string>;
  const steps = setupSteps(decodeURIComponent(url.pathname.slice(1)), passwords);
  let existing: string[] = [];
  if (options.run) {
    await reach({ variable: 'setup', url: text }, 0);
    existing = await runSteps(text, steps);
  } else {
    for (const { statement } of steps) printLine(`${statement};`);
  }
  const start = options.run ? '' : '-- ';
  const [owner, daemon, reader] = LOGINS.map((login) => {
    const of = new URL(url);
    of.username = login;
    of.password = existing.includes(login) ? '…' : passwords[login];
    return decodeURI(of.href);
  });
  printLine(`${start}DATABASE_URL=${daemon}`);
  printLine(`${start}DATABASE_OWNER_URL=${owner}`);
  printLine(`${start}For finance: ${reader}`);
  for (const login of existing) printLine(`${login} existed; its password was not changed.`);
  return 0;
}

function parse(text: string): URL {
  const url = URL.parse(text);
  if (url && /^postgres(ql)?:$/.test(url.protocol) && url.pathname.length > 1) return url;
  throw new Failure(
    'bad_setting',
    'setup takes a URL such as postgres://admin@db.example/tallyhook',
  );
}
