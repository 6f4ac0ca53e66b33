/** The pages: which view belongs to which address, and how the navigation groups them. */
import type { ComponentType } from './kit/html.ts';

/** What a view is given: the parts of the path after its name. */
export interface ViewProps {
  ids: string[];
}
export type Loader = () => Promise<{ default: ComponentType<ViewProps> }>;

/** The view of a list, and that of one of its subjects, by the first segment of the path. */
export const VIEWS: Record<string, readonly [list: Loader, one?: Loader]> = {
  '': [() => import('./views/overview.ts')],
  operations: [
    () => import('./views/operations/operations.ts'),
    () => import('./views/operations/operation.ts'),
  ],
  endpoints: [
    () => import('./views/webhooks/endpoints.ts'),
    () => import('./views/webhooks/endpoint.ts'),
  ],
  deliveries: [
    () => import('./views/webhooks/deliveries.ts'),
    () => import('./views/webhooks/delivery.ts'),
  ],
  events: [() => import('./views/webhooks/events.ts')],
  watches: [() => import('./views/setup/watches.ts')],
  keys: [() => import('./views/setup/keys.ts')],
  quarantine: [() => import('./views/setup/quarantine.ts')],
  settings: [() => import('./views/setup/settings.ts')],
  audit: [() => import('./views/setup/audit.ts')],
  drifts: [() => import('./views/ledger/drifts.ts'), () => import('./views/ledger/drift.ts')],
  wallets: [() => import('./views/ledger/wallets.ts'), () => import('./views/ledger/wallet.ts')],
  tokens: [() => import('./views/ledger/tokens.ts'), () => import('./views/ledger/token.ts')],
  ledger: [() => import('./views/ledger/ledger.ts')],
  reports: [() => import('./views/ledger/reports.ts'), () => import('./views/ledger/report.ts')],
  periods: [() => import('./views/ledger/periods.ts')],
};

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
    ],
  ],
];
