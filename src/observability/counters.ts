import { Counter, type Registry } from 'prom-client';

/** Makes counters of one registry. */
export const countersOf =
  (registry: Registry) =>
  <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter({ name, help, labelNames: [...labelNames], registers: [registry] });
