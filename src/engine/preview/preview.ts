import { ControllerPreview } from './controller-preview.js';
import type { Preview, PreviewProps } from './controller-preview.js';

/**
 * What the controllers would do if custom resources were as they are given.
 *
 * **Guarantees.** Nothing is written. Plans, ownership and shared objects are judged by the code that `run` judges them
 * by.
 *
 * **Caveats.** Where an object has to be deleted before it is made anew, its defaults aren't known. What would follow
 * from what Kubernetes does of all this, such as a rollout, isn't either.
 *
 * @throws ApiError, or whatever the transport throws, where something that a plan needs can't be read
 */
export async function preview(props: PreviewProps): Promise<Preview> {
  const parts: Preview[] = [];
  for (const controller of props.controllers) {
    const one = new ControllerPreview(controller, props);
    for (const key of one.keys()) parts.push(await one.preview(key));
  }
  return {
    objects: parts.flatMap(({ objects }) => objects),
    explanations: parts.flatMap(({ explanations }) => explanations),
    explainedBefore: parts.flatMap(({ explainedBefore }) => explainedBefore),
  };
}
