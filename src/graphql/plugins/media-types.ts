import { isAsyncIterable, type Plugin, processRegularResult } from 'graphql-yoga';
import { EVENT_STREAM } from '../../common/event-stream.ts';
import { refusedRequest } from '../refused-request.ts';

/** The media types of a single result that Yoga writes, and of a stream. */
const WRITTEN: readonly string[] = [
  'application/json',
  'application/graphql-response+json',
  'multipart/mixed',
  EVENT_STREAM,
];

/**
 * Refuses a request whose body is of a form that is not read (415) or is a list of operations (400), or whose answer would have to be of a
 * form that is not written (406; RFC 9110, 12.5.1), before anything of it runs. Yoga would find the last once a mutation has run, and hide
 * what became of it.
 */
export function useMediaTypes(): Plugin {
  return {
    onRequestParse({ request: { headers } }) {
      const encoding = headers.get('content-encoding') ?? 'identity';
      if (encoding !== 'identity')
        throw refusedRequest(
          415,
          `The body of a GraphQL request is not compressed; this one has Content-Encoding: ${encoding}.`,
        );
      const accept = headers.get('accept');
      if (accept && !acceptsWritten(accept))
        throw refusedRequest(406, `No answer is ${accept}: accept one of ${WRITTEN.join(', ')}, in UTF-8.`);
      return {
        onRequestParseDone({ requestParserResult }) {
          if (Array.isArray(requestParserResult))
            throw refusedRequest(
              400,
              'The body is a list of operations, and nothing of it runs: send each in a request of its own, without batching (in Apollo Client by HttpLink, not BatchHttpLink).',
            );
        },
      };
    },
    onResultProcess({ result, resultProcessor, setResultProcessor }) {
      // A refusal is written all the same, because a person reads it.
      if (resultProcessor === undefined && !isAsyncIterable(result))
        setResultProcessor(processRegularResult, 'application/json');
    },
  };
}

/** Whether Yoga writes a type that is in one of these media ranges: it knows no charset but UTF-8. */
function acceptsWritten(accept: string): boolean {
  return accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.replace(/\s/g, '').toLowerCase().split(';');
    const charset = parameters.find((parameter) => parameter.includes('charset=')) ?? 'charset=utf-8';
    if (charset !== 'charset=utf-8') return false;
    const [main, sub] = type.split('/');
    return WRITTEN.some((written) => {
      const [writtenMain, writtenSub] = written.split('/');
      return (main === '*' || main === writtenMain) && (sub === '*' || sub === writtenSub);
    });
  });
}
