/**
 * Names that were replaced: identifiers, files, tables, columns and settings are split into their
 * words (`pollAgain` is poll, again), and none of them may be a private word.
 */
import type { Node } from 'oxc-parser';
import { sourcesOf, type Tree } from './source.ts';

/** Private words, each with what is used instead. */
const REPLACED = new Map(
  `
  admission, admit, admitting: intake, record
  ask, asked: request, poll
  beliefs: outcome, evidence
  beside: open, matching
  breath: interval
  clean: quiet
  courier: dispatcher, sender
  door, doors: public module, deps
  doubt, doubts: unconfirmed intent
  elsewhere: reported
  enrol: add
  gently: coalesce
  hungry: starved
  hurry: expedite
  lane: connection pool
  lanes: concurrency
  looked, looks: polled, polls
  mates: others
  nobody, somebody, whoever: the name of the actor
  overlooked: missed
  overturn, overturned: supersede
  park, parked, parking: throttled, deferred
  rooms: slots, folders
  said, told: result, answer
  seal, sealed: encrypt, encrypted
  settler: result writer
  spoken: exchange
  stirring, wakeful: recent deliveries
  stranger, strangers: unauthenticated
  sweep, sweeping: scan
  turn, turns: order, slot
  want, wanted, wanting, wants: posting request
  whatever: the name of the thing
  wish, wishes: request, params
  `
    .split('\n')
    .map((line) => line.trim().split(': '))
    .flatMap(([words = '', use = '']) => words.split(', ').map((word) => [word, use] as const)),
);

/** A view that finance knows by this name. */
const PUBLISHED = 'in_doubt';

const WORD = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g;

/** Names that hold a replaced word. */
export function replacedNames(tree: Tree): string[] {
  return [...identifiers(tree), ...fileNames(tree), ...sqlNames(tree), ...settings(tree)];
}

function wrongIn(name: string): string[] {
  if (name === PUBLISHED) return [];
  const words = (name.match(WORD) ?? []).map((word) => word.toLowerCase());
  const wrong = words.find((word) => REPLACED.has(word));
  return wrong ? [`${name} says ${wrong}, use ${REPLACED.get(wrong)}`] : [];
}

function identifiers(tree: Tree): string[] {
  return sourcesOf(tree).flatMap(({ all, at }) => {
    const seen = new Set<string>();
    const names: (Node & { name: string })[] = [...all('Identifier'), ...all('PrivateIdentifier')];
    return names.flatMap(({ name, start }) => {
      if (seen.has(name)) return [];
      seen.add(name);
      return wrongIn(name).map((wrong) => at(start, wrong));
    });
  });
}

function fileNames(tree: Tree): string[] {
  return sourcesOf(tree).flatMap(({ path, at }) => wrongIn(path).map((wrong) => at(0, wrong)));
}

/** Quoted names in the migrations: tables, columns, indexes, constraints. */
function sqlNames(tree: Tree): string[] {
  return linesOf(tree, '.sql', /"(\w+)"/g);
}

function settings(tree: Tree): string[] {
  return linesOf(tree, '.yaml', /^\s*(\w+):/gm);
}

function linesOf(tree: Tree, ending: string, pattern: RegExp): string[] {
  return [...tree].flatMap(([path, text]) => {
    if (!path.endsWith(ending)) return [];
    const names = new Set([...text.matchAll(pattern)].map(({ 1: name = '' }) => name));
    return [...names].flatMap((name) => wrongIn(name).map((wrong) => `${path}: ${wrong}`));
  });
}
