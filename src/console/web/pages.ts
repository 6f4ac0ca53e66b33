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
