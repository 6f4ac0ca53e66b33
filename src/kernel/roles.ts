/** The roles of a daemon: which parts of Tallyhook it runs. */

export const ROLES = ['gateway', 'api', 'workers', 'delivery'] as const;
export type Role = (typeof ROLES)[number];
