/** The address bar as the state of the page: links, filters and the way back work as everywhere. */
import { useEffect, useState } from './html.ts';
import { BASE_PATH, insidePath } from './shell.ts';

export interface Place {
  /** Within the console. */
  path: string;
  query: URLSearchParams;
}

const CHANGED = 'tallyhook:place';
const present = (): Place => ({
  path: insidePath(location.pathname) ?? location.pathname,
  query: new URLSearchParams(location.search),
});

/** The present place; the view is drawn again when it changes. */
export function usePlace(): Place {
  const [place, setPlace] = useState(present);
  useEffect(() => {
    const update = () => setPlace(present());
    addEventListener('popstate', update);
    addEventListener(CHANGED, update);
    return () => {
      removeEventListener('popstate', update);
      removeEventListener(CHANGED, update);
    };
  }, []);
  return place;
}

/** @param href a path within the console */
export function go(href: string, how: 'push' | 'replace' = 'push'): void {
  history[how === 'push' ? 'pushState' : 'replaceState'](null, '', BASE_PATH + href);
  dispatchEvent(new Event(CHANGED));
}

/** Changes filters in the address; an empty value removes one. */
export function setQuery(changes: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes))
    if (value) query.set(name, value);
    else query.delete(name);
  go(`${present().path}${query.size > 0 ? `?${query}` : ''}`, 'replace');
}

/** Follows links to pages of the console without loading the document again. */
export function followLinks(isPage: (path: string) => boolean): void {
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest?.('a');
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey;
    if (!link || !isPlain || event.defaultPrevented || link.target) return;
    const path = link.origin === location.origin ? insidePath(link.pathname) : undefined;
    if (path === undefined || !isPage(path)) return;
    // A place on this page, such as its content: the browser goes there, also with the keyboard.
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    go(path + link.search);
    scrollTo(0, 0);
  });
}
