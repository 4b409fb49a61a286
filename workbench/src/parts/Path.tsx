/** A REST path as people read it: the client's id is the same in all of them. */
const shortened = (path: string): string => path.replace(/^\/v1\/clients\/[^/]+/, '…').replace(/^\/v1/, '');

/** A REST path, which goes on in another line at a `/`, `?` or `&`. The whole is in its title. */
export function Path({ path }: { readonly path: string }) {
  return (
    <span className="wb-path" title={path}>
      {shortened(path)
        .split(/(?<!…)(?=[/?&])/)
        .map((part, index) => (
          // The parts of one path keep their order.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <span key={index}>{part}</span>
        ))}
    </span>
  );
}
