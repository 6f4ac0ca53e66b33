/** The states in which the service is, as it announces them or answers. */
export const SERVICE_STATES = ['active', 'announced', 'maintenance', 'unreachable'] as const;
export type ServiceState = (typeof SERVICE_STATES)[number];
