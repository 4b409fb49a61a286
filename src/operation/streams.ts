import type { Caller } from '../auth/caller.ts';
import { type Limit, noteRefusal } from '../common/refusals.ts';

/** For whom a stream is open. Streams are bounded for each. */
export interface StreamHolder {
  /** The same for all streams of one caller: in service mode a subject, for one customer where it is narrowed to one; else the client. */
  readonly caller: string;
  readonly clientId: string;
}

export const streamHolder = ({ clientId, customerId, subject }: Caller): StreamHolder => ({
  caller:
    subject === undefined && customerId === undefined
      ? clientId
      : `${clientId} ${customerId ?? ''} ${subject ?? ''}`,
  clientId,
});

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
  | 'all-kept-full';

const LIMIT_OF: Readonly<Record<StreamRefusal, Limit>> = {
  full: 'streams',
  'address-full': 'streams_of_address',
  'caller-full': 'streams_of_caller',
  'client-full': 'streams_of_client',
  'kept-full': 'kept_of_caller',
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
  'all-kept-full':
    'The open operations of all callers keep too many bytes of variables and documents. Try again later.',
};
