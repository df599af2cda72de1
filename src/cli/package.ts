import { readFileSync } from 'node:fs';

interface Package {
  readonly version: string;
  /** Image of a release, in its bundle. */
  readonly image?: string;
}

/** The bundler replaces this read by its result. */
function ownPackage(): Package {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Package;
}

export function packageVersion(): string {
  return ownPackage().version;
}

/** Image of this version: that of the release, else the one that `npm run image:build` makes. */
export function operatorImage(): string {
  const { version, image } = ownPackage();
  return image ?? `reconstruct:${version}`;
}
