/** Loading of the configuration: defaults, precedence, and one line for each invalid value. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Environment, loadConfig, requireService } from '../../src/daemon/config/config.ts';
import { DEFINED, treeOf } from '../../src/daemon/config/settings.ts';
import { useFolder } from '../harness/folder.ts';
import { refusal } from './refusal.ts';
import { defaultYaml, settingsPage } from './settings-text.ts';

const DEFAULTS = join(import.meta.dirname, '../../config/default.yaml');
const KEY = Buffer.alloc(32, 7).toString('base64');
const SERVICE = {
  UPSTREAM_BASE_URL: 'https://api.example',
  UPSTREAM_AUTH_URL: 'https://auth.example/',
  UPSTREAM_TX_URL: 'https://tx.example/prefix//',
  UPSTREAM_CLIENT_ID: 'id',
  UPSTREAM_CLIENT_SECRET: 'hush-secret',
};

const folder = useFolder();

let files = 0;
async function fileOf(text: string): Promise<Environment> {
  const path = join(folder, `${files++}.yaml`);
  await writeFile(path, text);
  return { TALLYHOOK_CONFIG: path };
}

describe('config/default.yaml', () => {
  const text = defaultYaml();
  const tree = parse(text);

  it('is what the definition of the settings gives, as is their table in docs', async () => {
    await expect(text).toMatchFileSnapshot(DEFAULTS);
    await expect(settingsPage()).toMatchFileSnapshot(join(DEFAULTS, '../../docs/settings.md'));
  });

  it('has every setting of the schema and no other', () => {
    const settings = DEFINED.filter(({ isSection }) => !isSection);
    const named = settings.map(({ path, default: value }) => [path, value] as const);
    expect(treeOf(named)).toEqual(tree);
    expect(settings.filter(({ description }) => !description)).toEqual([]);
  });

  it('is the configuration of a start without environment', () => {
    const { dataDir, databaseUrl, service, adminKey, masterKey, ...settings } = loadConfig({});
    expect(settings).toMatchObject(tree);
    expect([databaseUrl, service, adminKey, masterKey]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(dataDir).toBe(join(process.cwd(), 'data'));
  });

  it('names every environment variable that overrides it', () => {
    for (const name of [
      'HOST',
      'PORT',
      'LOG_LEVEL',
      'UPSTREAM_BUDGET_PER_S',
      'UPSTREAM_QUIESCENCE_MS',
      'WEBHOOK_ALLOW_CIDRS',
    ])
      expect(text).toContain(`# ${name};`);
  });
});

describe('A setting', () => {
  it('comes from the environment, else from TALLYHOOK_CONFIG, else from the defaults', async () => {
    const env = await fileOf('http:\n  port: 1\n  host: 0.0.0.0\nlog: { level: debug }\n');
    const config = loadConfig({ ...env, PORT: '2' });
    expect(config.http).toMatchObject({ port: 2, host: '0.0.0.0', body_bytes_max: 1_048_576 });
    expect(config.log.level).toBe('debug');
    expect(loadConfig({ PORT: '2' }, { http: { port: 3 } }).http.port).toBe(3);
  });

  it('ignores an empty variable and surrounding white space', () => {
    const config = loadConfig({ PORT: '', HOST: '  ', LOG_LEVEL: ' warn ', MASTER_KEY: ' ' });
    expect([config.http.port, config.http.host, config.log.level]).toEqual([
      8080,
      '127.0.0.1',
      'warn',
    ]);
  });

  it('keeps its default with an empty file', async () => {
    expect(loadConfig(await fileOf('# nothing\n')).http.port).toBe(8080);
  });

  it('that is a list is replaced as a whole', async () => {
    const env = await fileOf('webhooks: { allow_cidrs: ["10.0.0.0/8", "fd00::/8"] }');
    expect(loadConfig(env).webhooks.allow_cidrs).toEqual(['10.0.0.0/8', 'fd00::/8']);
    const both = loadConfig({ ...env, WEBHOOK_ALLOW_CIDRS: '192.168.0.0/16, 172.16.0.0/12' });
    expect(both.webhooks.allow_cidrs).toEqual(['192.168.0.0/16', '172.16.0.0/12']);
  });

  it('can be set by each variable of the contract', () => {
    const config = loadConfig({
      ...SERVICE,
      HOST: '::1',
      PORT: '0',
      LOG_LEVEL: 'trace',
      UPSTREAM_BUDGET_PER_S: '2.5',
      UPSTREAM_QUIESCENCE_MS: '1000',
      DATABASE_URL: 'postgres://u:hush-db@h:1/d',
      DATABASE_OWNER_URL: 'postgresql://o@h/d',
      DATA_DIR: '/tmp/x',
      ADMIN_KEY: `thk_${'a'.repeat(32)}`,
      MASTER_KEY: KEY,
      NODE_ENV: 'production',
      PATH: '/bin',
    });
    expect(config).toMatchObject({
      http: { host: '::1', port: 0 },
      log: { level: 'trace' },
      upstream: { budget_per_s: 2.5 },
      reconciler: { quiescence_ms: 1000 },
      databaseUrl: 'postgres://u:hush-db@h:1/d',
      databaseOwnerUrl: 'postgresql://o@h/d',
      dataDir: '/tmp/x',
      adminKey: `thk_${'a'.repeat(32)}`,
      service: {
        baseUrl: 'https://api.example',
        authUrl: 'https://auth.example',
        txUrl: 'https://tx.example/prefix',
        clientId: 'id',
        clientSecret: 'hush-secret',
      },
    });
    expect(Buffer.from(String(config.masterKey), 'base64')).toHaveLength(32);
  });

  it('cannot be changed after loading', () => {
    const frozen = (value: object): boolean =>
      Object.isFrozen(value) &&
      Object.values(value).every(
        (item) => typeof item !== 'object' || item === null || frozen(item),
      );
    expect(frozen(loadConfig({ ...SERVICE, MASTER_KEY: KEY }))).toBe(true);
  });
});

describe('An invalid configuration is refused with one line', () => {
  it.each<[Environment, RegExp]>([
    [{ PORT: '80x' }, /^PORT must be a port from 0 to 65535$/],
    [{ PORT: '65536' }, /^PORT must be a port/],
    [{ PORT: '-1' }, /^PORT must be a port/],
    [{ PORT: '1.5' }, /^PORT must be a port/],
    [{ TALLYHOOK_METRICS_PORT: '65536' }, /^TALLYHOOK_METRICS_PORT must be a port from 0 /],
    [{ LOG_LEVEL: 'loud' }, /^LOG_LEVEL must be trace, debug, info, warn, error or fatal$/],
    [{ UPSTREAM_BUDGET_PER_S: '0' }, /^UPSTREAM_BUDGET_PER_S must be polls per second/],
    [{ UPSTREAM_BUDGET_PER_S: 'many' }, /^UPSTREAM_BUDGET_PER_S must be/],
    [{ UPSTREAM_QUIESCENCE_MS: '0' }, /^UPSTREAM_QUIESCENCE_MS must be whole milliseconds/],
    [{ UPSTREAM_QUIESCENCE_MS: '1.5' }, /^UPSTREAM_QUIESCENCE_MS must be/],
    [{ TALLYHOOK_ROLES: 'gateway,worker' }, /^TALLYHOOK_ROLES must be some of gateway, api, /],
    [{ TALLYHOOK_ROLES: ',' }, /^TALLYHOOK_ROLES must be some of .*, separated by commas$/],
    [{ WEBHOOK_ALLOW_CIDRS: '10.0.0.1' }, /^WEBHOOK_ALLOW_CIDRS must be ranges such as/],
    [{ WEBHOOK_ALLOW_CIDRS: '10.0.0.0/8,x' }, /^WEBHOOK_ALLOW_CIDRS must be/],
    [{ UPSTREAM_PROXY: 'proxy:3128' }, /^UPSTREAM_PROXY must be http:\/\/user:password@proxy/],
    [{ WEBHOOK_PROXY: 'socks5://proxy' }, /^WEBHOOK_PROXY must be .*, or environment or none$/],
    [{ HTTPS_PROXY: 'socks5://proxy' }, /^HTTPS_PROXY must be an address such as .*, not SOCKS$/],
    [{ https_proxy: 'http://a/b', HTTPS_PROXY: 'http://a' }, /^HTTPS_PROXY must be an address/],
    [{ TALLYHOOK_TRUSTED_PROXIES: 'nginx' }, /^TALLYHOOK_TRUSTED_PROXIES must be ranges such as/],
    [{ TALLYHOOK_BASE_PATH: 'tallyhook' }, /^TALLYHOOK_BASE_PATH must be a path such as/],
    [{ TALLYHOOK_BASE_PATH: '/tallyhook/' }, /^TALLYHOOK_BASE_PATH must be a path such as/],
    [{ TALLYHOOK_BASE_PATH: '/a/../b' }, /^TALLYHOOK_BASE_PATH must be a path such as/],
    [{ TALLYHOOK_BASE_PATH: '/api' }, /^TALLYHOOK_BASE_PATH must be a path such as/],
    [{ ADMIN_KEY: 'admin' }, /^ADMIN_KEY must be thk_ and at least 32/],
    [{ ADMIN_KEY: `thk_${'a'.repeat(31)}` }, /^ADMIN_KEY must be/],
    [{ MASTER_KEY: 'short' }, /^MASTER_KEY must be 32 bytes in base64/],
    [{ MASTER_KEY: `${KEY} !${KEY}` }, /^MASTER_KEY must be/],
    [{ MASTER_KEY: `!${KEY}` }, /^MASTER_KEY must be/],
    [{ DATABASE_URL: 'mysql://h/d', MASTER_KEY: KEY }, /^DATABASE_URL must be a URL such as/],
    [{ DATABASE_URL: 'nonsense', MASTER_KEY: KEY }, /^DATABASE_URL must be/],
    [{ DATABASE_OWNER_URL: 'h:5432' }, /^DATABASE_OWNER_URL must be/],
    [{ ...SERVICE, UPSTREAM_TX_URL: '' }, /^UPSTREAM_TX_URL must be set as well/],
    [
      { UPSTREAM_CLIENT_SECRET: 'x' },
      /^UPSTREAM_BASE_URL must be set as well, because UPSTREAM_CLIENT_SECRET/,
    ],
    [{ ...SERVICE, UPSTREAM_BASE_URL: 'api.example' }, /^UPSTREAM_BASE_URL must be a URL/],
    [{ ...SERVICE, UPSTREAM_AUTH_URL: 'ftp://x' }, /^UPSTREAM_AUTH_URL must be a URL/],
    [
      { UPSTREAM_BASEURL: 'x' },
      /^UPSTREAM_BASEURL is not a setting; did you mean UPSTREAM_BASE_URL\?$/,
    ],
    [{ UPSTREAM_BUDGET: '1' }, /did you mean UPSTREAM_BUDGET_PER_S\?$/],
    [{ WEBHOOK_ALLOW_CIDR: 'x' }, /did you mean WEBHOOK_ALLOW_CIDRS\?$/],
    [{ TALLYHOOK_CONFG: 'x' }, /did you mean TALLYHOOK_CONFIG\?$/],
    [{ TALLYHOOK_CONFIG: '/nowhere/x.yaml' }, /x\.yaml cannot be read; TALLYHOOK_CONFIG must name/],
  ])('for the environment %o', (env, line) => {
    expect(refusal(env)).toMatch(line);
    expect(refusal(env)).not.toContain('\n');
  });

  it.each<[string, RegExp]>([
    ['http: { prot: 1 }', /^http\.prot is not a setting; did you mean http\.port\?$/],
    ['htp: {}', /^htp is not a setting; did you mean http\?$/],
    ['upstream: { budget_per_second: 1 }', /did you mean upstream\.budget_per_s\?$/],
    [
      'reports: { reconciliation: { timezone: UTC } }',
      /did you mean reports\.reconciliation\.time_zone\?$/,
    ],
    ['http: { port: "80" }', /^http\.port is invalid: /],
    [
      'reports: { reconciliation: { cron: daily } }',
      /^reports\.reconciliation\.cron is invalid: must be the five fields of cron, such as /,
    ],
    ['http: 5', /^http is invalid: /],
    ['webhooks:', /^webhooks is invalid: /],
    ['webhooks: { proxy: ftp://p }', /^webhooks\.proxy is invalid: must be http:\/\/user/],
    ['http: { base_path: /docs }', /^http\.base_path is invalid: must not begin like a path of/],
    ['upstream: { steady_share: 2 }', /^upstream\.steady_share is invalid: /],
    ['database: { connections: { people: 0 } }', /^database\.connections\.people is invalid: /],
    [
      'database: { statement_timeout_ms: 3000000000 }',
      /^database\.statement_timeout_ms is invalid/,
    ],
    [
      'database: { body_retention_days: { walet.*: 30 } }',
      /^database\.body_retention_days is invalid: must be days by event types, group\.\* or \*$/,
    ],
    [
      'database: { body_retention_days: { "*": 0 } }',
      /^database\.body_retention_days\.\* is invalid: /,
    ],
    ['ledger: { fees_addr: "0x1" }', /^ledger\.fees_addr is invalid: /],
    ['alerts: { rules: [{ kind: wallet_below }] }', /^alerts\.rules\.0\.name is invalid: /],
    [
      'alerts: { rules: [{ name: a, kind: wallet_above, wallet: "0x1", amount: 5 }] }',
      /^alerts\.rules\.0\.wallet is invalid: must be an address of 42 characters, or operator/,
    ],
    [
      'alerts: { rules: [{ name: a, kind: wallet_below, wallet: "operator:7", amount: 5 }] }',
      /^alerts\.rules\.0\.wallet is invalid: must be an operator with an address in ledger/,
    ],
    [
      'alerts: { rules: [{ name: a, kind: drift_above, amount: "x" }] }',
      /^alerts\.rules\.0\.amount is invalid: /,
    ],
    [
      'alerts: { rules: [{ name: A.b, kind: unknown_older, age_ms: 5 }] }',
      /^alerts\.rules\.0\.name is invalid: must be like operator-low$/,
    ],
    [
      'alerts: { rules: [&a { name: a, kind: unknown_older, age_ms: 5 }, *a] }',
      /^alerts\.rules is invalid: two rules have one name$/,
    ],
    ['ledger: { fee_mode: split }', /^ledger\.fee_mode is invalid: /],
    ['ledger: { fee_mode: [] }', /^ledger\.fee_mode(?:\.0)? is invalid: /],
    [
      'ledger: { fee_mode: [{ mode: on_top }, { mode: deducted }] }',
      /^ledger\.fee_mode(?:\.1\.from)? is invalid: /,
    ],
    [
      `ledger: { fee_mode: [{ mode: on_top }, { from: "2026-02-01T00:00:00Z", mode: deducted },
        { from: "2026-02-01T00:00:00Z", mode: on_top }] }`,
      /^ledger\.fee_mode is invalid: each rule must have a later from than the one before it$/,
    ],
    ['ledger: { operators: { a: "x" } }', /^ledger\.operators\.?a? is invalid: /],
    ['reports: { reconciliation: { time_zone: Mars/Base } }', /invalid: not a time zone$/],
    ['reports: { organisation: "" }', /^reports\.organisation is invalid: not a name on one line$/],
    ['reports: { organisation: "a\\nb" }', /invalid: not a name on one line$/],
    [
      'reports: { reconciliation: { period: week } }',
      /^reports\.reconciliation\.period is invalid: /,
    ],
    ['- a\n- b', /\.yaml must be YAML with the sections of config\/default\.yaml$/],
    ['a: [', /\.yaml must be YAML with the sections/],
    ['just words', /\.yaml must be YAML with the sections/],
  ])('for the file %s', async (text, line) => {
    const message = refusal(await fileOf(text));
    expect(message).toMatch(line);
    expect(message).not.toContain('\n');
  });

  it('for a start in production without a service, which no command needs', () => {
    const production = { NODE_ENV: 'production' };
    const start = (env: Environment) => () => requireService(loadConfig(env), env);
    expect(start(production)).toThrow(
      expect.objectContaining({
        detail: expect.stringMatching(/^UPSTREAM_BASE_URL must be .*prod/),
      }),
    );
    expect(start({ ...production, ...SERVICE })).not.toThrow();
    expect(start({})).not.toThrow();
  });

  it('that contains no value, since it may be a secret', async () => {
    const message = [
      refusal({ ADMIN_KEY: 'thk_hush' }),
      refusal({ MASTER_KEY: 'hush' }),
      refusal({ HTTPS_PROXY: 'http://u:hush@p/hush' }),
      refusal({ WEBHOOK_PROXY: 'socks5://u:hush@p' }),
      refusal({ DATABASE_URL: 'hush://u:hush@h' }),
      refusal({ ...SERVICE, UPSTREAM_BASE_URL: 'hush' }),
      refusal({ ...SERVICE, UPSTREAM_TX_URL: undefined }),
    ];
    expect(message.join()).not.toContain('hush');
  });
});
