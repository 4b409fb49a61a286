/** Where everything is, from where the page is: a proxy may have put the gateway beneath a path of its own. */
const page = new URL(location.pathname, location.origin);

const LOOPBACK = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/;

/** Whether this device has no network and needs one: a gateway that is on it is reached all the same. */
export const isOffline = (): boolean => !navigator.onLine && !LOOPBACK.test(location.hostname);

/** The graph: the page's own address. */
export const GRAPH_URL = page.href;
export const GRAPH_SOCKET_URL = page.href.replace(/^http/, 'ws');

/** A part of the gateway that is the page's alone, such as `session`. */
export const ownUrl = (path: string): string => `${page.href}/workbench/${path}`;
