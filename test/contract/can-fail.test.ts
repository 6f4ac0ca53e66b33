/**
 * A suite that cannot fail says nothing: wrong services, and the statements that they contradict.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { LIES } from './lies.ts';
import { type Lie, startLying } from './lying.ts';
import { makeService } from './service.ts';
import { judge, type Statement } from './statement.ts';
import { STATEMENTS } from './statements.ts';

const CLIENT = { clientId: 'test-client', clientSecret: 'test-secret' };
const DEADLINE_MS = 2_000;

let sandbox: Sandbox;

beforeAll(async () => {
  const clock = { now: () => Date.now() };
  sandbox = await startSandbox({ seed: 5, clock, settleMs: 5, ...CLIENT });
});
afterAll(() => sandbox.close());

const named = (pattern: RegExp) => STATEMENTS.filter(({ title }) => pattern.test(title));

/** What the wrong service contradicts of the statements, each with the sentence. */
async function contradicted(lie: Lie, statements: readonly Statement[]) {
  const lying = await startLying(sandbox.url, lie);
  const { url } = lying;
  const hosts = { base: url, auth: url, tx: url };
  const service = makeService({ ...hosts, control: sandbox.url, patienceMs: 300, ...CLIENT });
  const found = new Map<Statement, string>();
  for (const each of statements) {
    const verdict = await judge(each, service, DEADLINE_MS);
    if (verdict.result === 'not held') found.set(each, verdict.why);
  }
  await service.close();
  await lying.close();
  sandbox.control.reset({});
  return found;
}

const titles = (statements: Iterable<Statement>) => [...statements].map(({ title }) => title);

/** Turns one field into another type wherever it is answered. */
const wrongType = (field: string): Lie => ({
  told: (told) => ({
    ...told,
    body: told.body
      .replace(new RegExp(`"${field}":"[^"]*"`, 'g'), `"${field}":7.5`)
      .replace(new RegExp(`"${field}":(-?\\d+|true|false)(?=[,}])`, 'g'), `"${field}":"$1"`),
  }),
});

const FIELDS = [
  ...['contract_id', 'token_id', 'token_owner', 'token_uri', 'token_metadata', 'token_extradata'],
  ...['token_creator', 'token_created_at', 'token_owned_at', 'token_is_locked', 'status'],
  ...['last_tx_hash', 'token_addr', 'amt_token', 'tx_app_no', 'tx_log_no', 'token_type'],
  ...['access_token', 'refresh_token', 'expires_in', 'scope', 'app_no', 'member_no', 'nickname'],
  ...['grant_type', 'active', 'exp', 'client_id', 'total', 'perPage', 'page', 'lastPage'],
];

describe('A field of another type is seen', () => {
  test.each(FIELDS)('%s', async (field) => {
    const about = named(new RegExp(`^(list: )?${field} is (a|an|written)\\b(?!.*refused$)`));
    expect(about.length).toBeGreaterThan(0);
    const found = await contradicted(wrongType(field), about);
    expect(titles(found.keys())).toEqual(titles(about));
  });
});

/** A lie, the statements that must see it, and a sentence that one of them says. */
const SEEN: [lie: string, statements: RegExp, sentence: RegExp][] = [
  [
    'addresses and hashes lack a character',
    /tx_hash (of 66|has length 66|is a string of length 66)/,
    /a string of 66 characters \(it has 65\)/,
  ],
  [
    'errors have no status',
    /^status of an error|^Body status|^Status \d|^(400|401|404|422) /,
    /status should be a JSON integer and is missing/,
  ],
  [
    'integers beyond 2^53 lose digits',
    /^(token_id|amt_token) beyond 2\^53|^amount beyond/,
    /should be 9007199254740993 and is 9007199254740992/,
  ],
  [
    'refusals of NFT endpoints have their own HTTP code',
    /comes with HTTP 200/,
    /the HTTP code .* should be 200 and is 4/,
  ],
  [
    'every other HTTP code is 200',
    /returned as the HTTP code itself|^HTTP (401|403|404|500|503)/,
    /the HTTP code.* should be 5\d\d and is 200/,
  ],
  [
    'error codes and details are others',
    /^Status \d+, code|is the detail for/,
    /should be refused with code 398/,
  ],
  ['no token is looked at', /^(NFT|give|receive-from|transfer|acc).* refuses a/, /body status 401/],
  [
    'filters and pages are ignored',
    /^list: (ownerAddr|creatorAddr) of nobody/,
    /total should be 0/,
  ],
  [
    'one token too many is moved',
    /^give adds|^transfer (adds|takes) the amount/,
    /should be 2 and is 3/,
  ],
  ['messages tell no figures', /^(397|198 .*tells|196 tells)/, /the message should tell 41/],
  [
    'tokens stay active for ever',
    /^check_token reports a token of 24 hours/,
    /is active should be/,
  ],
  [
    'pages may be asked from browsers',
    /does not support CORS/,
    /should be "" and is "access-control-allow-origin"/,
  ],
  [
    'the redirect goes elsewhere with nothing',
    /^authorize: the redirect/,
    /where the user agent is sent should be/,
  ],
  ['limits of length are one higher', /has max length \d+: \d+ characters/, /body status 400/],
  [
    'a client token has a user',
    /^client_credentials: the record is without/,
    /should not be there/,
  ],
];

describe('A lie is seen', () => {
  test.each(SEEN)('%s', async (lie, pattern, sentence) => {
    const about = named(pattern).filter(({ check }) => check !== undefined);
    expect(about.length).toBeGreaterThan(0);
    // A right answer comes first where a lie needs one to begin with.
    const before = lie === 'no token is looked at' ? named(/ takes a (client|user) token$/) : [];
    const make = LIES[lie];
    const found = await contradicted(make?.() ?? {}, [...before, ...about]);
    expect(titles(found.keys())).toEqual(titles(about));
    expect([...found.values()].filter((why) => sentence.test(why))).not.toEqual([]);
  });
});

test('Every statement that is checked is contradicted by one of the lies', async () => {
  let left = STATEMENTS.filter(({ check }) => check !== undefined);
  for (const make of Object.values(LIES)) {
    const found = await contradicted(make(), left);
    left = left.filter((each) => !found.has(each));
  }
  expect(titles(left)).toEqual([]);
});

test('Without a lie nothing is contradicted', async () => {
  expect(titles((await contradicted({}, STATEMENTS)).keys())).toEqual([]);
});

test('What needs an operator is not checked where there is none', async () => {
  const { url } = sandbox;
  const service = makeService({ base: url, auth: url, tx: url, ...CLIENT });
  const verdicts = [];
  for (const each of named(/^READY means|^999|^An access token expires 24/)) {
    verdicts.push(await judge(each, service));
  }
  await service.close();
  expect(verdicts).toEqual(verdicts.map(() => ({ result: 'not checked', why: 'needs --control' })));
  expect(verdicts.length).toBeGreaterThan(1);
});
