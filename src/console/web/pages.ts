/** The pages as the navigation groups them, and what the view of a page is given. */

/** The parts of the path after its name. */
export interface ViewProps {
  ids: string[];
}

type Link = readonly [href: string, text: string];

export const NAVIGATION: readonly (readonly [group: string, links: readonly Link[]])[] = [
  [
    'Now',
    [
      ['/', 'Overview'],
      ['/operations', 'Operations'],
    ],
  ],
  [
    'Books',
    [
      ['/drifts', 'Drifts'],
      ['/wallets', 'Wallets'],
      ['/operators', 'Operators'],
      ['/tokens', 'Tokens'],
      ['/ledger', 'Ledger'],
      ['/reports', 'Reports'],
      ['/periods', 'Periods'],
    ],
  ],
  [
    'Webhooks',
    [
      ['/endpoints', 'Endpoints'],
      ['/deliveries', 'Deliveries'],
      ['/events', 'Events'],
    ],
  ],
  [
    'Setup',
    [
      ['/watches', 'Watches'],
      ['/keys', 'Keys'],
      ['/quarantine', 'Quarantine'],
      ['/settings', 'Settings'],
      ['/audit', 'Audit trail'],
      ['/docs', 'API and events'],
    ],
  ],
];

/** Whether a page shows the books, with times in the zone of their days. */
export function isOfBooks(first: string): boolean {
  const books = NAVIGATION.find(([group]) => group === 'Books');
  return books?.[1].some(([href]) => href === `/${first}`) ?? false;
}
