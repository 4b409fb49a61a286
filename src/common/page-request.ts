import type { IncomingMessage } from 'node:http';

/** Whether a browser asks for a page, or a tool for what a browser would get (HEAD). */
export const asksForPage = ({ method, headers }: IncomingMessage): boolean =>
  (method === 'GET' || method === 'HEAD') && headers.accept?.includes('text/html') === true;
