/** Something forbade an action, so nothing was done. */
export class ActionRefused extends Error {}

/** An action could not be carried out, or had no success. */
export class ActionFailed extends Error {
  /** It would fail again in this program. */
  readonly isFinal: boolean;

  constructor(why: string, isFinal: boolean) {
    super(why);
    this.isFinal = isFinal;
  }
}
