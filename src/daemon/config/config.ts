/**
 * Loads the configuration from the environment, YAML files and files of secrets, validates and
 * freezes it, and lists for people what is in effect. The only reader of the environment. An
 * unknown name or an invalid value is refused with one line that states what is expected.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import { parseConnection } from '../../db/connection/settings.ts';
import { Failure } from '../../kernel/errors.ts';
import { type ProxySettings, parseProxy, withScheme } from '../../kernel/http/forward-proxy.ts';
import type { Json } from '../../kernel/json.ts';
import type { BucketKeys } from '../../reports/reports.ts';
import { SECRET_PATTERN, SECRET_WORDS } from '../../resources/admin/key.ts';
import type { setting } from '../../resources/admin/setting.ts';
import type { Shown } from '../../resources/resource.ts';
import { type Environment, withSecretFiles } from './secret-files.ts';
import {
  DEFINED,
  type Defined,
  FILE_SUFFIX,
  SECRETS,
  type Settings,
  settingsSchema,
  treeOf,
  unitOf,
  VARIABLES,
} from './settings.ts';

type EffectiveSetting = Shown<typeof setting>;

export interface Config extends Settings {
  dataDir: string;
  /** Undefined for the embedded Postgres. */
  databaseUrl: string | undefined;
  databaseOwnerUrl: string | undefined;
  /** Of a replica. */
  databaseReadUrl: string | undefined;
  /** Undefined for the sandbox in the same process. */
  service: ServiceAddress | undefined;
  adminKey: string | undefined;
  /** 32 bytes in base64. */
  masterKey: string | undefined;
  /** The former one, during a rotation. */
  masterKeyOld: string | undefined;
  /** Of the sign-in by OpenID Connect; undefined for a public client. */
  oidcClientSecret: string | undefined;
  /** Of the bucket for reports; undefined without one. */
  bucketKeys: BucketKeys | undefined;
  /** Of the environment. */
  proxies: ProxySettings;
  /** What people are shown of all this. */
  effective: readonly EffectiveSetting[];
}

export interface ServiceAddress {
  baseUrl: string;
  authUrl: string;
  txUrl: string;
  clientId: string;
  clientSecret: string;
}

export type { Environment };

const OVERRIDES = DEFINED.flatMap(({ path, variable }) =>
  variable ? [{ path, ...variable }] : [],
);

const SERVICE_VARIABLES = [
  'UPSTREAM_BASE_URL',
  'UPSTREAM_AUTH_URL',
  'UPSTREAM_TX_URL',
  'UPSTREAM_CLIENT_ID',
  'UPSTREAM_CLIENT_SECRET',
] as const;
const KEY_FORM = '32 bytes in base64 (openssl rand -base64 32)';
const KNOWN_VARIABLES = [
  ...OVERRIDES.map(({ name }) => name),
  ...Object.keys(VARIABLES),
  ...SECRETS.map((name) => name + FILE_SUFFIX),
  `TALLYHOOK_KEY${FILE_SUFFIX}`,
];
const NAMES = DEFINED.map(({ path }) => path.join('.'));
const DEFAULTS = treeOf(
  DEFINED.flatMap(({ path, isSection, default: value }) => (isSection ? [] : [[path, value]])),
);

/**
 * @param overrides settings that take precedence over everything else
 * @throws Failure `bad_setting` with one line that names the setting
 */
export function loadConfig(given: Environment = process.env, overrides: object = {}): Config {
  refuseUnknownVariables(given);
  const env = withSecretFiles(withProxyVariables(given));
  const file = text(env, 'TALLYHOOK_CONFIG');
  const layers = [
    ['default', DEFAULTS],
    ['file', file ? readYaml(resolve(file)) : {}],
    ['environment', fromEnvironment(env)],
    ['command', overrides],
  ] as const;
  const merged = layers.map(([, tree]) => tree).reduce(merge);
  const settings = parseSettings(merged, env);
  const service = serviceOf(env);
  const databaseUrl = databaseUrlOf(env, 'DATABASE_URL');
  const dataDir = resolve(text(env, 'DATA_DIR') ?? './data');
  return deepFreeze({
    ...settings,
    dataDir,
    databaseUrl,
    databaseOwnerUrl: databaseUrlOf(env, 'DATABASE_OWNER_URL'),
    databaseReadUrl: databaseUrlOf(env, 'DATABASE_READ_URL'),
    service,
    adminKey: adminKeyOf(env),
    masterKey: masterKeyOf(env, 'MASTER_KEY'),
    masterKeyOld: masterKeyOf(env, 'MASTER_KEY_OLD'),
    oidcClientSecret: text(env, 'OIDC_CLIENT_SECRET'),
    bucketKeys: bucketKeysOf(settings, env),
    proxies: proxiesOf(env),
    effective: effectiveSettings(settings, layers, env, dataDir),
  });
}

/** For what decrypts secrets. @throws Failure `bad_setting` for an external database without key */
export function requireMasterKey({ databaseUrl, masterKey }: Config): void {
  if (databaseUrl && !masterKey) throw bad('MASTER_KEY', `${KEY_FORM}; DATABASE_URL requires it`);
}

/**
 * For a start; commands of the image such as `migrate` need no service.
 * @throws Failure `bad_setting` for the sandbox in production
 */
export function requireService({ service }: Config, env: Environment = process.env): void {
  if (service || env.NODE_ENV !== 'production') return;
  throw bad(
    'UPSTREAM_BASE_URL',
    'the address of the service; with NODE_ENV=production no sandbox is started',
  );
}

function bad(name: string, expected: string): Failure {
  return new Failure('bad_setting', `${name} must be ${expected}`);
}

function text(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === '' ? undefined : value;
}

function refuseUnknownVariables(env: Environment): void {
  for (const name of Object.keys(env)) {
    if (!/^(UPSTREAM|WEBHOOK|TALLYHOOK)_/.test(name) || KNOWN_VARIABLES.includes(name)) continue;
    throw new Failure(
      'bad_setting',
      `${name} is not a setting; did you mean ${nearest(name, KNOWN_VARIABLES)}?`,
    );
  }
}

function readYaml(path: string): object {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch {
    throw new Failure(
      'bad_setting',
      `${path} cannot be read; TALLYHOOK_CONFIG must name a YAML file`,
    );
  }
  try {
    const parsed: unknown = parse(content);
    if (parsed === null || parsed === undefined) return {};
    if (typeof parsed === 'object' && !Array.isArray(parsed)) return parsed;
  } catch {
    // Reported below.
  }
  throw new Failure('bad_setting', `${path} must be YAML with the sections of config/default.yaml`);
}

function fromEnvironment(env: Environment): object {
  return treeOf(
    OVERRIDES.flatMap(({ name, path, read }) => {
      const value = text(env, name);
      return value === undefined ? [] : [[path, read(value)] as const];
    }),
  );
}

function parseSettings(merged: object, env: Environment): Settings {
  const parsed = settingsSchema.safeParse(merged);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.join('.') ?? '';
  if (issue?.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys;
    const name = path ? `${path}.${key}` : key;
    throw new Failure(
      'bad_setting',
      `${name} is not a setting; did you mean ${nearest(name, NAMES)}?`,
    );
  }
  const variable = OVERRIDES.find(
    (row) => `${path}.`.startsWith(`${row.path.join('.')}.`) && text(env, row.name) !== undefined,
  );
  if (variable) throw bad(variable.name, variable.expected);
  throw new Failure('bad_setting', `${path} is invalid: ${issue?.message ?? 'unknown reason'}`);
}

function serviceOf(env: Environment): ServiceAddress | undefined {
  const set = SERVICE_VARIABLES.filter((name) => text(env, name) !== undefined);
  if (set.length === 0) return undefined;
  const missing = SERVICE_VARIABLES.find((name) => text(env, name) === undefined);
  if (missing) throw bad(missing, `set as well, because ${set[0]} is set`);
  const url = (name: string) => {
    const value = text(env, name) ?? '';
    const parsed = URL.canParse(value) ? new URL(value) : undefined;
    if (!parsed || !/^https?:$/.test(parsed.protocol))
      throw bad(name, 'a URL such as https://api.example');
    return value.replace(/\/+$/, '');
  };
  return {
    baseUrl: url('UPSTREAM_BASE_URL'),
    authUrl: url('UPSTREAM_AUTH_URL'),
    txUrl: url('UPSTREAM_TX_URL'),
    clientId: text(env, 'UPSTREAM_CLIENT_ID') ?? '',
    clientSecret: text(env, 'UPSTREAM_CLIENT_SECRET') ?? '',
  };
}

function databaseUrlOf(env: Environment, name: string): string | undefined {
  const value = text(env, name);
  if (value) parseConnection(value, name);
  return value;
}

function adminKeyOf(env: Environment): string | undefined {
  const value = text(env, 'ADMIN_KEY');
  if (value && !SECRET_PATTERN.test(value)) throw bad('ADMIN_KEY', SECRET_WORDS);
  return value;
}

function masterKeyOf(env: Environment, name: string): string | undefined {
  const value = text(env, name);
  // Buffer.from would skip invalid characters. 32 bytes are 43 digits.
  if (value !== undefined && !/^[A-Za-z0-9+/_-]{43}=?$/.test(value)) {
    throw bad(name, KEY_FORM);
  }
  return value;
}

/** The lower-case names take precedence, as in curl. */
function withProxyVariables(given: Environment): Environment {
  const names = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY', 'NO_PROXY'];
  const found = names.map((name) => [name, text(given, name.toLowerCase()) ?? given[name]]);
  return { ...given, ...Object.fromEntries(found) };
}

function proxiesOf(env: Environment): ProxySettings {
  const url = (name: string) => {
    const value = text(env, name);
    if (value === undefined || parseProxy(value)) return value;
    throw bad(name, 'an address such as http://user:password@proxy:3128, also https://, not SOCKS');
  };
  const all = url('ALL_PROXY');
  return {
    https: url('HTTPS_PROXY') ?? all,
    http: url('HTTP_PROXY') ?? all,
    except: text(env, 'NO_PROXY'),
  };
}

/** Merges sections; lists and plain values of `overrides` replace those of `base`. */
function merge(base: object, overrides: object): object {
  const result: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(overrides)) {
    const current = result[key];
    result[key] = isTree(current) && isTree(value) ? merge(current, value) : value;
  }
  return result;
}

function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function deepFreeze<T extends object>(value: T): T {
  for (const item of Object.values(value)) {
    if (isTree(item) || Array.isArray(item)) deepFreeze(item);
  }
  return Object.freeze(value);
}

/**
 * Undefined without a bucket.
 * @throws Failure `bad_setting` for a bucket without its address or keys, or beside a folder
 */
function bucketKeysOf({ reports }: Settings, env: Environment): BucketKeys | undefined {
  const { folder, bucket } = reports.delivery;
  if (bucket.name === null) return undefined;
  const refuse = (name: string, expected: string): never => {
    throw bad(name, expected);
  };
  const needed = (name: string) =>
    text(env, name) ?? refuse(name, 'set for reports.delivery.bucket.name');
  if (folder !== null)
    refuse('reports.delivery.folder', 'null while reports are delivered to a bucket');
  if (bucket.endpoint === null)
    refuse(
      'reports.delivery.bucket.endpoint',
      'a URL such as https://s3.eu-central-1.amazonaws.com',
    );
  return {
    accessKeyId: needed('AWS_ACCESS_KEY_ID'),
    secretAccessKey: needed('AWS_SECRET_ACCESS_KEY'),
    sessionToken: text(env, 'AWS_SESSION_TOKEN'),
  };
}

/** The name that a misspelt one was probably meant to be. */
function nearest(name: string, known: readonly string[]): string {
  const sorted = [...known].sort((a, b) => distance(name, a) - distance(name, b));
  return sorted[0] ?? '';
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/**
 * The settings in effect and where each comes from, for people. Of a secret only whether it is set
 * is listed; a URL is listed without its login and its query.
 * @param settings the validated ones
 * @param layers what each source sets, the strongest last
 */
function effectiveSettings(
  settings: object,
  layers: readonly (readonly [source: EffectiveSetting['source'], tree: object])[],
  env: Environment,
  dataDir: string,
): EffectiveSetting[] {
  const strongestFirst = layers.toReversed();
  const found = leavesOf(settings).map(([path, value]): EffectiveSetting => {
    const source = strongestFirst.find(([, tree]) => names(tree, path))?.[0] ?? 'default';
    const name = path.join('.');
    const { description = null, isUrl } = settingAt(path) ?? {};
    const shown = isUrl && typeof value === 'string' ? withoutLogin(value) : value;
    const unit = unitOf(name);
    const is_set = value !== null;
    return { name, value: shown, source, is_secret: false, is_set, description, unit };
  });
  const variables = Object.entries(VARIABLES).flatMap(([name, { kind, description }]) => {
    if (kind === 'command') return [];
    const given = text(env, name);
    const value = name === 'DATA_DIR' ? dataDir : given;
    return [
      {
        name,
        value: value === undefined || kind === 'secret' ? null : shownOf(kind, value),
        source: given === undefined ? ('default' as const) : ('environment' as const),
        is_secret: kind === 'secret',
        is_set: value !== undefined,
        description,
        unit: null,
      },
    ];
  });
  return [...found, ...variables];
}

/** The setting that holds the value at that path. */
function settingAt(path: readonly string[]): Defined | undefined {
  return DEFINED.find((one) => !one.isSection && one.path.every((name, n) => name === path[n]));
}

function shownOf(kind: 'url' | 'text', value: string): string {
  return kind === 'text' ? value : withoutLogin(withScheme(value));
}

/** A URL without its login and query; a word as it is. */
function withoutLogin(value: string): string {
  const url = URL.parse(value);
  return url ? url.origin + url.pathname.replace(/\/+$/, '') : value;
}

/** Values by their path; an empty section is a value. */
function leavesOf(tree: object, before: string[] = []): [path: string[], value: Json][] {
  return Object.entries(tree).flatMap(([key, value]): [string[], Json][] => {
    const path = [...before, key];
    const isSection = isTree(value) && Object.keys(value).length > 0;
    return isSection ? leavesOf(value, path) : [[path, value]];
  });
}

/** Whether a source sets the value at a path. */
function names(tree: object, path: readonly string[]): boolean {
  let at: unknown = tree;
  for (const key of path) {
    if (!isTree(at) || !Object.hasOwn(at, key)) return false;
    at = at[key];
  }
  return true;
}
