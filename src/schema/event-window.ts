import { builder } from './builder.ts';

const WAYS = {
  'oldest first': { behind: 'later', before: 'earlier', end: 'newest' },
  'newest first': { behind: 'earlier', before: 'later', end: 'oldest' },
} as const;

/**
 * The arguments of an edge that leads into the event log.
 *
 * @param order in which the edge shows its events.
 */
export const eventWindow = (order: keyof typeof WAYS) => {
  const { behind, before, end } = WAYS[order];
  return builder.args((t) => ({
    first: t.int({
      description: 'How many events to return, from 1 to 100; null means 50.',
    }),
    after: t.field({
      type: 'Cursor',
      description: `Start behind this event, with ${behind} ones. Null starts at the beginning.`,
    }),
    last: t.int({
      description: `How many events to return, from 1 to 100, counted back from \`before\`. Not together with \`first\` or \`after\`.`,
    }),
    before: t.field({
      type: 'Cursor',
      description: `End before this event, with ${before} ones. Null, with \`last\`, ends with the ${end}.`,
    }),
  }));
};
