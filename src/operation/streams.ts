import type { Caller } from '../auth/caller.ts';
import { type Limit, noteRefusal } from '../common/refusals.ts';

/** For whom a stream is open. Streams are bounded for each. */
export interface StreamHolder {
  /** The same for all streams of one caller: in service mode a subject, for one customer where it is narrowed to one; else the client. */
  readonly caller: string;
  readonly clientId: string;
  /**
   * Whose operations together may keep so many bytes: the client where one gateway serves several, else the customer. Undefined
   * for the people of the one client, who are bounded by what each keeps and by the sum of all.
   */
  readonly group?: string | undefined;
}

export function streamHolder({ clientId, customerId, subject, amongClients }: Caller): StreamHolder {
  const isClient = subject === undefined && customerId === undefined;
  return {
    caller: isClient ? clientId : `${clientId} ${customerId ?? ''} ${subject ?? ''}`,
    clientId,
    group: amongClients ? clientId : customerId,
  };
}

/** What an operation keeps as long as it lasts. */
export interface KeptBytes {
  /** Its own, such as its variables. */
  readonly bytes: number;
  /** Its document, which counts once however many operations of a caller have it. */
  readonly document: object;
  readonly documentBytes: number;
}

/** Why a stream may not begin. */
export type StreamRefusal =
  | 'full'
  | 'address-full'
  | 'caller-full'
  | 'client-full'
  | 'kept-full'
  | 'group-kept-full'
  | 'all-kept-full';

/** The limit that each refusal stands for. */
export const LIMIT_OF: Readonly<Record<StreamRefusal, Limit>> = {
  full: 'streams',
  'address-full': 'streams_of_address',
  'caller-full': 'streams_of_caller',
  'client-full': 'streams_of_client',
  'kept-full': 'kept_of_caller',
  'group-kept-full': 'kept_of_group',
  'all-kept-full': 'kept',
};

/** A stream, or a socket, was refused. */
export const noteRefusedStream = (refusal: StreamRefusal): void => noteRefusal(LIMIT_OF[refusal]);

/** The refusals for people: each says whose streams are too many. */
export const STREAM_REFUSALS: Readonly<Record<StreamRefusal, string>> = {
  full: 'Too many streams are open in this process. Try again later.',
  'address-full': 'Too many streams are open from this network address. Close one, or try again later.',
  'caller-full': 'Too many streams of this caller are open. Close one, or try again later.',
  'client-full': 'Too many streams are open of all callers of this client. Try again later.',
  'kept-full':
    'The open operations of this caller keep too many bytes of variables and documents. Close one, or send less.',
  'group-kept-full':
    'The open operations of this client or customer keep too many bytes of variables and documents. Try again later.',
  'all-kept-full':
    'The open operations of all callers keep too many bytes of variables and documents. Try again later.',
};
