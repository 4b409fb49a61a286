import { graphql } from './gql/index.ts';

export const CLIENT = graphql(`
  query Client {
    client {
      id
    }
  }
`);
