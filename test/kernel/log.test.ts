import { expect, it } from 'vitest';
import { Failure } from '../../src/kernel/errors.ts';
import { type Log, makeLog, maskSecrets } from '../../src/kernel/telemetry/log.ts';

const SECRET = 'Secr0123456789abcdefSecr';

function written(write: (log: Log) => void): string {
  let text = '';
  const log = makeLog('trace', {
    write: (line: string) => {
      text += line;
    },
  });
  write(log);
  return text;
}

/** As database drivers create them: statement and parameters in the message. */
function driverError(name: string): Error {
  const error = new Error(`Failed query: insert into x\nparams: ${SECRET}`);
  error.name = name;
  return Object.assign(error, { query: 'insert', params: [SECRET], parameters: [SECRET] });
}

const FIELDS = [
  'authorization',
  'access_token',
  'refresh_token',
  'client_secret',
  'clientSecret',
  'secret',
  'password',
  'token',
  'code',
  'key',
  'adminKey',
  'masterKey',
  'databaseUrl',
  'DATABASE_URL',
];

it.each(FIELDS)('The log redacts the field %s at the top and up to three levels down', (field) => {
  const secret = { [field]: SECRET };
  const text = written((log) => {
    log.info(secret, 'top');
    log.info({ a: secret }, 'one');
    log.info({ a: { b: secret } }, 'two');
    log.info({ a: { b: { c: secret } } }, 'three');
    log.info({ list: [secret] }, 'in a list');
    log.child(secret).info('child');
    log.info({ headers: secret }, 'headers');
  });
  expect(text.split('\n')).toHaveLength(8);
  expect(text).not.toContain(SECRET);
  expect(text).toContain('[secret]');
});

it.each<[string, (log: Log) => void]>([
  ['a message', (log) => log.info(`sent Bearer ${SECRET}`)],
  ['an error', (log) => log.error({ err: new Error(`key thk_${SECRET}`) }, 'x')],
  ['a bare error', (log) => log.error(new Error(`Authorization: Basic ${SECRET}`))],
  ['an error in a field', (log) => log.warn({ reason: new Error(`whsec_${SECRET}`) }, 'x')],
  [
    'the cause of a cause',
    (log) => {
      const inner = new Error('b', { cause: new Error(`Bearer ${SECRET}`) });
      log.error({ err: new Error('a', { cause: inner }) }, 'x');
    },
  ],
  ['an error of the driver', (log) => log.error({ err: driverError('PostgresError') }, 'x')],
  ['an error of drizzle', (log) => log.error({ err: driverError('Error') }, 'x')],
  [
    'a driver error as cause',
    (log) => log.error({ err: new Failure('internal'), more: driverError('Error').cause }, 'x'),
  ],
  [
    'a wrapped driver error',
    (log) => log.error({ err: new Error('x', { cause: driverError('Error') }) }, 'x'),
  ],
  ['the address of a database', (log) => log.info({ at: `postgres://me:${SECRET}@h/d` }, 'x')],
  ['a password with an @', (log) => log.info({ at: `postgres://me:@${SECRET}@h/d` }, 'x')],
  ['a password without a user', (log) => log.info({ at: `redis://:${SECRET}@h` }, 'x')],
  ['a query', (log) => log.info({ url: `/v1/oauth/check_token?token=${SECRET}&a=1` }, 'x')],
  ...['token', 'access_token', 'refresh_token', 'client_secret', 'password', 'Password'].map(
    (name): [string, (log: Log) => void] => [
      `a form with ${name}`,
      (log) => log.info({ body: `a=1&${name}=${SECRET}&b=2` }, 'x'),
    ],
  ),
  ['a deep field that looks like one', (log) => log.info({ a: [[[[`whsk_${SECRET}`]]]] }, 'x')],
])('The log hides a secret in %s', (_place, write) => {
  const text = written(write);
  expect(text).not.toContain(SECRET);
  expect(text).not.toBe('');
  for (const line of text.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
});

it('The log keeps everything else', () => {
  const text = written((log) => {
    log.info({ url: 'http://127.0.0.1:8080/x', at: 'a@b.c', errorCode: '40001', n: 1 }, 'ready');
    log.error({ err: new Failure('lease_lost', 'sequencer') }, 'a pass failed');
  });
  const [first, second] = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(first).toMatchObject({
    level: 'info',
    url: 'http://127.0.0.1:8080/x',
    at: 'a@b.c',
    errorCode: '40001',
    msg: 'ready',
  });
  expect(second.err).toMatchObject({ message: 'lease_lost: sequencer', errorCode: 'lease_lost' });
  expect(second.err.stack).toMatch(/^\s+at /);
});

it('The log shows an error with four causes one in another, and no more of them', () => {
  let error = new Error('cause 5');
  for (const n of [4, 3, 2, 1]) error = new Error(`cause ${n}`, { cause: error });
  const text = written((log) => log.error({ err: new Error('the error', { cause: error }) }, 'x'));
  const found = ['the error', 1, 2, 3, 4, 5].map((n) =>
    text.includes(String(n).padStart(7, 'cause ')),
  );
  expect(found).toEqual([true, true, true, true, true, false]);
});

it('The log accepts an error that is its own cause, and a value that is not an error', () => {
  const ring = new Error('ring');
  ring.cause = ring;
  expect(() => written((log) => log.error({ err: ring }, 'x'))).not.toThrow();
  expect(written((log) => log.error({ err: SECRET }, 'x'))).not.toContain(SECRET);
});

it.each([
  ['no secret at all', 'no secret at all'],
  ['http://host:80/path', 'http://host:80/path'],
  ['mail a@b.c', 'mail a@b.c'],
  ['x thk_abc y', 'x thk_[secret] y'],
  ['bearer abc.def', 'bearer [secret]'],
  ['postgres://u:p@h:5432/d', 'postgres://u:[secret]@h:5432/d'],
])('The log writes %j as %j', (text, masked) => {
  expect(maskSecrets(text)).toBe(masked);
});

it.each(['authorization', 'secrets', 'code', 'key'])(
  'The log redacts the field %s with any value',
  (field) => {
    const text = written((log) => log.info({ a: { [field]: ['plain', 1] }, [field]: 7 }, 'x'));
    expect(JSON.parse(text)).toMatchObject({ a: { [field]: '[secret]' }, [field]: '[secret]' });
  },
);

it('An error of a driver is named without its statement and parameters', () => {
  const errors: [string, object][] = [
    ['PostgresError', {}],
    ['Error', { query: 'select 1' }],
    ['Error', { parameters: [SECRET] }],
  ];
  for (const [name, members] of errors) {
    const error = Object.assign(new Error(`of a statement: ${SECRET}`), members, { name });
    const text = written((log) => log.error({ err: error }, 'x'));
    expect(JSON.parse(text).err).toMatchObject({ name, message: 'database statement failed' });
    expect(text).not.toContain(SECRET);
  }
});

it('What is logged of an error: its name, message, code, cause and seven lines of its stack', () => {
  const cause = new TypeError('the cause');
  const error = Object.assign(new Error('first line\nat no frame', { cause }), { code: 7 });
  const frames = Array.from({ length: 9 }, (_, n) => `    at f${n} (file.ts:${n})`);
  error.stack = ['Error: first line', 'at no frame', ...frames].join('\n');
  const { err } = JSON.parse(written((log) => log.error({ err: error }, 'x')));
  expect(err).toMatchObject({ name: 'Error', message: 'first line\nat no frame' });
  expect(err.cause).toMatchObject({ name: 'TypeError', message: 'the cause' });
  expect(err).not.toHaveProperty('errorCode');
  expect(err.stack).toBe(frames.slice(0, 7).join('\n'));
  const bare = Object.assign(new Error('bare'), { stack: undefined });
  expect(JSON.parse(written((log) => log.error({ err: bare }, 'x'))).err.stack).toBe('');
  expect(JSON.parse(written((log) => log.error({ err: 'text' }, 'x'))).err).toEqual({
    name: 'string',
  });
});

it.each([
  ['Bearer \t abc', 'Bearer [secret]'],
  ['xBearer abc', 'xBearer abc'],
  ['a=1&token=abc&b=2', 'a=1&token=[secret]&b=2'],
  ['my_password=abc', 'my_password=abc'],
  ['tokens=abc', 'tokens=abc'],
  ['refresh_token=a"b', 'refresh_token=[secret]"b'],
  ['whsk_a+/=_-b c', 'whsk_[secret] c'],
  ['redis://:a@b@h', 'redis://:[secret]@h'],
  ['http://h/a:b', 'http://h/a:b'],
])('The log writes %j as %j, and nothing else of it', (text, masked) => {
  expect(maskSecrets(text)).toBe(masked);
});
