import type { Event } from '../resolvers/events/event.ts';
import { eventPage, reachesBackTo } from '../resolvers/events/event-page.ts';
import { followEvents, followMoneyIn } from '../resolvers/events/subscriptions.ts';
import { builder, ENTERS_LOG } from './builder.ts';
import { PageInfoType } from './connection.ts';
import { EventInterface, EventTypeEnum, MoneyInEventType } from './event.ts';
import { EventConnectionType } from './refs.ts';

const EventEdgeType = builder.objectRef<Event>('EventEdge').implement({
  description: 'One of the events, and its place in the log.',
  fields: (t) => ({
    cursor: t.expose('cursor', {
      type: 'Cursor',
      nullable: false,
      description: 'Place of the event in the log.',
    }),
    node: t.field({
      type: EventInterface,
      nullable: false,
      description: 'The event itself.',
      resolve: (event) => event,
    }),
  }),
});

EventConnectionType.implement({
  description: 'A page of the event log: oldest first, but for `Account.moneyIn`.',
  fields: (t) => ({
    edges: t.field({
      type: [EventEdgeType],
      nullable: false,
      description: 'The events, each with its cursor.',
      resolve: (page) => page.nodes,
    }),
    nodes: t.field({
      type: [EventInterface],
      nullable: false,
      description: 'The events without their cursors.',
      resolve: (page) => page.nodes,
    }),
    pageInfo: t.expose('pageInfo', {
      type: PageInfoType,
      nullable: false,
      description:
        'Where this page stands in the log. With a filter that rarely matches a page may hold few events, or none, and still say that more follow: read on from its cursor.',
    }),
    reachesBackTo: t.field({
      type: 'DateTime',
      description:
        'From when on the log is whole: it still holds every event that was received then or later. That is never before this life of the log began; but the log does not know what it has lost from its end, in a failover or with an earlier copy that was put back. Null while it holds none. For a caller narrowed to a customer: when the oldest credit to that customer since then was received.',
      resolve: (_page, _args, context) => reachesBackTo(context),
    }),
  }),
});

const typesArg = 'Only events of these types; null for all.';

builder.queryFields((t) => ({
  events: t.field({
    type: EventConnectionType,
    rights: ENTERS_LOG,
    description:
      'The retained event log. `first` with `after` reads on from an event already seen, oldest first; `last` with `before` reads back from the newest. With neither, the oldest retained 50. By time, transaction, tracking key and CLABE events are looked up, not read through; they keep the order of the log, in which an event that waited out an outage of Redis comes late.',
    args: {
      types: t.arg({ type: [EventTypeEnum], description: typesArg }),
      ownerId: t.arg.id({
        description:
          'UUID of a client or customer: only credits to its instruments, as no other event names an owner. Null for all.',
      }),
      after: t.arg({
        type: 'Cursor',
        description: 'Start behind this event. Null starts at the oldest retained.',
      }),
      first: t.arg.int({ description: 'How many events to return, from 1 to 100; null means 50.' }),
      before: t.arg({ type: 'Cursor', description: 'End before this event. Null ends with the newest.' }),
      last: t.arg.int({
        description: 'How many events to return, from 1 to 100, counted back from `before`.',
      }),
      receivedFrom: t.arg({
        type: 'DateTime',
        description: 'Only events that the gateway received at this time or later.',
      }),
      receivedTo: t.arg({
        type: 'DateTime',
        description: 'Only events that the gateway received before this time.',
      }),
      transactionId: t.arg.id({
        description:
          'Only events that name this transaction: a credit by its id, a receipt by its id or that of its validation, whichever the service sends. Where none bears the id itself, one REST call tells that of the validation.',
      }),
      trackingKey: t.arg.string({
        description: 'Only credits and receipts with this SPEI tracking key, as it is written there.',
      }),
      clabe: t.arg({ type: 'Clabe', description: 'Only credits to this CLABE.' }),
    },
    resolve: (_root, args, context) => eventPage(args, context),
  }),
  eventCursor: t.field({
    type: 'Cursor',
    rights: ENTERS_LOG,
    description:
      'Where the event log ends now: start a subscription here, so that nothing is missed before its first event. Null where the log cannot be read.',
    resolve: (_root, _args, { reads, identity }) => reads.events.head(identity.caller.clientId),
  }),
}));

const afterArg =
  'Cursor of the last event seen, or `Query.eventCursor`: everything later is sent first. Null starts with what comes from now on.';

builder.subscriptionFields((t) => ({
  moneyIn: t.field({
    type: MoneyInEventType,
    nullable: false,
    rights: ENTERS_LOG,
    description:
      'Credits as they arrive. With `after`, first everything missed since that cursor, without gap or repeat. Ends with the error `EVENTS_GAP` where that cannot be kept. What the log has lost from its end, in a failover or with an earlier copy that was put back, is missing without that error where the cursor stands before it; so is what lay in a spool whose disk is gone.',
    args: {
      ownerId: t.arg.id({
        description: 'UUID of the client or of a customer: only credits to its instruments. Null for all.',
      }),
      clabe: t.arg({
        type: 'Clabe',
        description: 'Only credits to this CLABE, whether or not an account has it. Null for all.',
      }),
      after: t.arg({ type: 'Cursor', description: afterArg }),
    },
    extensions: { fansOut: true },
    subscribe: (_root, args, context) => followMoneyIn(args, context),
    resolve: (event) => event,
  }),
  events: t.field({
    type: EventInterface,
    nullable: false,
    rights: ENTERS_LOG,
    description:
      "Every event of the caller's client, or of the given types; for a caller narrowed to a customer, that customer's credits and receipts. With `after`, as for `moneyIn`: first everything missed since that cursor, or the error `EVENTS_GAP`.",
    args: {
      types: t.arg({ type: [EventTypeEnum], description: typesArg }),
      after: t.arg({ type: 'Cursor', description: afterArg }),
    },
    extensions: { fansOut: true },
    subscribe: (_root, args, context) => followEvents(args, context),
    resolve: (event) => event,
  }),
}));
