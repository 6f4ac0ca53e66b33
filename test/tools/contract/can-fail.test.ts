/** Mutation tests of the suite: every statement fails at some wrong service. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { makeService } from './client/service.ts';
import { MUTATIONS, type Mutation, startMutatingProxy } from './mutations.ts';
import { checkStatement, type Statement } from './statement.ts';
import { STATEMENTS } from './statements.ts';

const CLIENT = { clientId: 'test-client', clientSecret: 'test-secret' };
const DEADLINE_MS = 2_000;
const CHECKED = STATEMENTS.filter(({ check }) => check !== undefined);

let sandbox: Sandbox;

beforeAll(async () => {
  const clock = { now: () => Date.now() };
  sandbox = await startSandbox({ seed: 5, clock, settleMs: 5, ...CLIENT });
});
afterAll(() => sandbox.close());

const matching = (pattern: RegExp) => STATEMENTS.filter(({ title }) => pattern.test(title));
const titles = (statements: Iterable<Statement>) => [...statements].map(({ title }) => title);

/** The statements that the mutated service contradicts, each with the message. */
async function contradicted(
  mutation: Mutation,
  statements: readonly Statement[],
  patienceMs = 300,
) {
  const proxy = await startMutatingProxy(sandbox.url, mutation);
  const { url } = proxy;
  const hosts = { base: url, auth: url, tx: url };
  const service = makeService({ ...hosts, control: sandbox.url, patienceMs, ...CLIENT });
  const found = new Map<Statement, string>();
  for (const each of statements) {
    const checked = await checkStatement(each, service, DEADLINE_MS);
    if (checked.result === 'not held') found.set(each, checked.why);
  }
  await service.close();
  await proxy.close();
  sandbox.control.reset({});
  return found;
}

/** Writes one field in another JSON type in every response. */
const wrongType = (field: string): Mutation => ({
  response: (response) => ({
    ...response,
    body: response.body
      .replace(new RegExp(`"${field}":"[^"]*"`, 'g'), `"${field}":7.5`)
      .replace(new RegExp(`"${field}":(-?\\d+|true|false)(?=[,}])`, 'g'), `"${field}":"$1"`),
  }),
});

const FIELDS = [
  'contract_id',
  'token_id',
  'token_owner',
  'token_uri',
  'token_metadata',
  'token_extradata',
  'token_creator',
  'token_created_at',
  'token_owned_at',
  'token_is_locked',
  'status',
  'last_tx_hash',
  'token_addr',
  'amt_token',
  'tx_app_no',
  'tx_log_no',
  'token_type',
  'access_token',
  'refresh_token',
  'expires_in',
  'scope',
  'app_no',
  'member_no',
  'nickname',
  'grant_type',
  'active',
  'exp',
  'client_id',
  'total',
  'perPage',
  'page',
  'lastPage',
];

it.each(FIELDS)('All statements on the type of %s fail when it has another type', async (field) => {
  const about = matching(new RegExp(`^(list: )?${field} is (a|an|written)\\b(?!.*refused$)`));
  expect(about.length).toBeGreaterThan(0);
  expect(titles((await contradicted(wrongType(field), about)).keys())).toEqual(titles(about));
});

/** A mutation, the statements that must all fail at it, and a message that one of them gives. */
const DETECTED: [mutation: string, statements: RegExp, message: RegExp][] = [
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
    'error codes and details have other values',
    /^Status \d+, code|is the detail for/,
    /expected a refusal with code 398/,
  ],
  [
    'access tokens are not checked',
    /^(NFT|give|receive-from|transfer|acc).* refuses a/,
    /body status 401/,
  ],
  [
    'filters and pages are ignored',
    /^list: an (ownerAddr|creatorAddr) without tokens/,
    /total should be 0/,
  ],
  [
    'one token too many is moved',
    /^give adds|^transfer (adds|takes) the amount/,
    /should be 2 and is 3/,
  ],
  [
    'messages have no figures',
    /^(397|198: balance|196: .*amount)/,
    /the message should contain 41/,
  ],
  ['tokens stay active forever', /^check_token reports a token of 24 hours/, /is active should be/],
  [
    'responses allow other origins',
    /does not support CORS/,
    /should be "" and is "access-control-allow-origin"/,
  ],
  [
    'the redirect goes to another URI without parameters',
    /^authorize: the redirect/,
    /the redirect target should be/,
  ],
  ['limits of length are one higher', /has max length \d+: \d+ characters/, /body status 400/],
  [
    'a client token record has user fields',
    /^client_credentials: the record is without/,
    /should be absent/,
  ],
];

describe('All statements that check the mutated behaviour fail', () => {
  it.each(DETECTED)('%s', async (name, pattern, message) => {
    const about = matching(pattern).filter(({ check }) => check !== undefined);
    expect(about.length).toBeGreaterThan(0);
    // This mutation reuses an access token that the endpoint accepted before.
    const before =
      name === 'access tokens are not checked' ? matching(/ takes a (client|user) token$/) : [];
    const found = await contradicted(MUTATIONS[name]?.() ?? {}, [...before, ...about]);
    expect(titles(found.keys())).toEqual(titles(about));
    expect([...found.values()].filter((why) => message.test(why))).not.toEqual([]);
  });
});

it('Every checked statement is contradicted by at least one mutation', async () => {
  let remaining = CHECKED;
  for (const make of Object.values(MUTATIONS)) {
    const found = await contradicted(make(), remaining);
    remaining = remaining.filter((each) => !found.has(each));
  }
  expect(titles(remaining)).toEqual([]);
});

it('No statement fails behind a proxy without a mutation', async () => {
  expect(titles((await contradicted({}, CHECKED, 5_000)).keys())).toEqual([]);
});

it('Statements that need a control surface are not checked without one', async () => {
  const { url } = sandbox;
  const service = makeService({ base: url, auth: url, tx: url, ...CLIENT });
  const results = [];
  for (const each of matching(/^READY means|^999|^An access token expires 24/)) {
    results.push(await checkStatement(each, service));
  }
  await service.close();
  expect(results).toEqual(results.map(() => ({ result: 'not checked', why: 'needs --control' })));
  expect(results.length).toBeGreaterThan(1);
});
