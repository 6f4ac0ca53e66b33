/**
 * Lists the settings in effect and where each comes from, for people. Of a secret only whether it
 * is set is listed; a URL is listed without its login and its query. Pure.
 */
import type { Json } from '../../kernel/json.ts';
import type { Shown } from '../../resources/resource.ts';
import type { setting } from '../../resources/setting.ts';

export type EffectiveSetting = Shown<typeof setting>;
type Source = EffectiveSetting['source'];
type Lookup = (name: string) => string | undefined;

/** Environment variables that are no settings of the file. */
const SECRETS = [
  'DATABASE_URL',
  'DATABASE_OWNER_URL',
  'DATABASE_READ_URL',
  'ADMIN_KEY',
  'MASTER_KEY',
  'MASTER_KEY_OLD',
  'UPSTREAM_CLIENT_SECRET',
  'OIDC_CLIENT_SECRET',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
];
const URLS = ['UPSTREAM_BASE_URL', 'UPSTREAM_AUTH_URL', 'UPSTREAM_TX_URL'];
const TEXTS = ['UPSTREAM_CLIENT_ID', 'TALLYHOOK_CONFIG', 'NODE_ENV'];

/**
 * @param settings the validated ones
 * @param layers what each source sets, the strongest last
 * @param variable the value of an environment variable
 */
export function effectiveSettings(
  settings: object,
  layers: readonly (readonly [source: Source, tree: object])[],
  variable: Lookup,
  dataDir: string,
): EffectiveSetting[] {
  const strongestFirst = layers.toReversed();
  const found = leavesOf(settings).map(([path, value]): EffectiveSetting => {
    const source = strongestFirst.find(([, tree]) => names(tree, path))?.[0] ?? 'default';
    return { name: path.join('.'), value, source, is_secret: false, is_set: value !== null };
  });
  const dataSource = variable('DATA_DIR') === undefined ? 'default' : 'environment';
  return [
    ...found,
    {
      name: 'DATA_DIR',
      value: dataDir,
      source: dataSource,
      is_secret: false,
      is_set: true,
    },
    ...TEXTS.map((name) => variableOf(name, variable(name), (text) => text)),
    ...URLS.map((name) => variableOf(name, variable(name), withoutLogin)),
    ...SECRETS.map((name) => variableOf(name, variable(name))),
  ];
}

/** @param shown what is listed of the value; without it, it is secret */
function variableOf(
  name: string,
  text: string | undefined,
  shown?: (text: string) => string,
): EffectiveSetting {
  const isSet = text !== undefined;
  return {
    name,
    value: isSet && shown ? shown(text) : null,
    source: isSet ? 'environment' : 'default',
    is_secret: shown === undefined,
    is_set: isSet,
  };
}

function withoutLogin(text: string): string {
  const { origin, pathname } = new URL(text);
  return origin + pathname.replace(/\/+$/, '');
}

function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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
