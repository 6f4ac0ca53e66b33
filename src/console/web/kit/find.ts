/** Where an id, number, hash, address or reference leads to. Pure. */

const PAGES: Record<string, string> = {
  op: '/operations/',
  drf: '/drifts/',
  ep: '/endpoints/',
  dlv: '/deliveries/',
  rep: '/reports/',
  per: '/periods/',
  evt: '/deliveries?event_id=',
};

/** The page of what an id names; undefined without one. */
export function pageOf(id: string): string | undefined {
  const page = PAGES[/^([a-z]+)_[0-9a-f-]{36}$/.exec(id)?.[1] ?? ''];
  return page && `${page}${id}`;
}

/** Whether a text looks like the address of a wallet. */
export const isAddress = (text: string): boolean => /^[0-9a-z]{42}$/i.test(text);

/** The path of what a text names; without a page of its own, a search of operations. */
export function placeOf(text: string): string {
  const asked = text.trim();
  const page = pageOf(asked);
  if (page !== undefined) return page;
  const name = encodeURIComponent(asked);
  if (isAddress(asked)) return `/wallets/${name}`;
  const token = /^(\d+)\/(\d+)$/.exec(asked);
  if (token) return `/tokens/${token[1]}/${token[2]}`;
  return asked === '' ? '/operations' : `/operations?query=${name}`;
}
