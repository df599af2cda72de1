import { join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';

/** Arguments of `reconstruct run` by which AppServices may have any route: without a policy they may have none. */
export const anyRoute = ['--policy', join(repoFolder(), 'test/full/support/any-route.yaml')];
