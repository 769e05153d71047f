// SPDX-License-Identifier: Apache-2.0

/** Asks a model for y of x: java Predict MODEL 10 20. Its native methods are those of predict_jni.c. */
public final class Predict {
  private static native long load(String folder);
  private static native String input(long model);
  private static native String output(long model);
  /** Throws IllegalArgumentException with what weft says. */
  private static native float[] predict(long model, float[] x);
  private static native void free(long model);

  public static void main(String[] words) {
    if (words.length < 2) {
      System.err.println("predict: expected the folder of a model and numbers");
      System.exit(2);
    }
    System.loadLibrary("predict_jni");
    float[] x = new float[words.length - 1];
    for (int i = 0; i < x.length; ++i) x[i] = Float.parseFloat(words[i + 1]);
    long model = 0;
    try {
      model = load(words[0] + "/1");
      StringBuilder line = new StringBuilder(output(model) + " of " + input(model) + ":");
      for (float y : predict(model, x)) line.append(String.format(" %.1f", y));
      System.out.println(line);
    } catch (IllegalArgumentException error) {
      System.err.println("predict: " + error.getMessage());
      System.exit(1);
    } finally {
      free(model);
    }
  }
}
