import { createGraphQLError } from 'graphql-yoga';

/** Returns the error of an HTTP request that is refused before anything of it runs, with its status. */
export const refusedRequest = (status: number, message: string): Error =>
  createGraphQLError(message, { extensions: { code: 'BAD_USER_INPUT', http: { status } } });
