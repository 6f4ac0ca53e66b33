/** Remembers what a pure function returned for the last few short texts. Pure. */
const TEXTS_MAX = 64;
const LENGTH_MAX = 256;

/** Texts repeat, such as host names, and the headers of the responses of a second. */
export function remembered<T>(of: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    if (text.length > LENGTH_MAX) return of(text);
    const before = known.get(text);
    if (before !== undefined) return before;
    if (known.size >= TEXTS_MAX) known.clear();
    const result = of(text);
    known.set(text, result);
    return result;
  };
}
