/**
 * Lists the settings in effect and where each comes from, for people. Of a secret only whether it
 * is set is listed; a URL is listed without its login and its query. Pure.
 */
import type { Json } from '../../kernel/json.ts';
import type { setting } from '../../resources/admin/setting.ts';
import type { Shown } from '../../resources/resource.ts';
import { DEFINED, unitOf, VARIABLES } from './settings.ts';

export type EffectiveSetting = Shown<typeof setting>;
type Source = EffectiveSetting['source'];
type Lookup = (name: string) => string | undefined;

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
    const name = path.join('.');
    const description = descriptionOf(path);
    const unit = unitOf(name);
    return { name, value, source, is_secret: false, is_set: value !== null, description, unit };
  });
  const variables = Object.entries(VARIABLES).flatMap(([name, { kind, description }]) => {
    if (kind === 'command') return [];
    const text = name === 'DATA_DIR' ? dataDir : variable(name);
    return [
      {
        name,
        value: text === undefined || kind === 'secret' ? null : shownOf(kind, text),
        source: variable(name) === undefined ? ('default' as const) : ('environment' as const),
        is_secret: kind === 'secret',
        is_set: text !== undefined,
        description,
        unit: null,
      },
    ];
  });
  return [...found, ...variables];
}

/** Of the setting that holds the value. */
function descriptionOf(path: readonly string[]): string | null {
  const setting = DEFINED.find(
    (one) => !one.isSection && one.path.every((name, n) => name === path[n]),
  );
  return setting?.description ?? null;
}

function shownOf(kind: 'url' | 'text', text: string): string {
  return kind === 'url' ? withoutLogin(text) : text;
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
