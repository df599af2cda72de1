import type { Kind } from '../contract/kind.js';

/** Kinds that come with the project too, and are loaded only where `--kinds` has them, by name and group. */
export const kindsOnRequest: Readonly<Record<string, () => Promise<Kind>>> = {
  'appservice.app.example.com': async () =>
    (await import('../kinds/app-service/example-group.js')).appServiceOfExample,
};
