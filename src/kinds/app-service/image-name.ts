/** Docker Hub, where images without a host come from, and its folder for those without any folder. */
const DEFAULT_HOST = 'docker.io';
const DEFAULT_FOLDER = 'library';

/** A part of a path, as the grammar of image references has it; what isn't one, such as `..`, may mean anything. */
const PART = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/;

/**
 * The full name of an image, without tag and digest: `docker.io/library/nginx` for `nginx:1.27`.
 * @returns undefined for what isn't an image reference
 * @see https://github.com/distribution/reference/blob/main/normalize.go
 */
export function fullImageName(image: string): string | undefined {
  const name = image
    .split('@', 1)
    .join('')
    .replace(/:[^:/]*$/, '');
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  const hasHost = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  const host = hasHost ? first.toLowerCase() : DEFAULT_HOST;
  const path = hasHost ? name.slice(slash + 1) : name;
  const parts = path.split('/');
  if (!parts.every((part) => PART.test(part))) return undefined;
  if (host === 'index.docker.io') return fullImageName(`${DEFAULT_HOST}/${path}`);
  return [host, ...(host === DEFAULT_HOST && parts.length === 1 ? [DEFAULT_FOLDER] : []), ...parts].join('/');
}

/** Whether an image by its full name lies in a registry, or in a folder of one: whole parts of the path count. */
export function isWithin(fullName: string, registry: string): boolean {
  const slash = registry.indexOf('/');
  const host = slash < 0 ? registry : registry.slice(0, slash);
  const folder = (host.toLowerCase() + registry.slice(host.length)).replace(/\/$/, '');
  return fullName === folder || fullName.startsWith(`${folder}/`);
}
