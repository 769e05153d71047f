// SPDX-License-Identifier: Apache-2.0
// The writing systems of code points.
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"

#include "re2/set.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops::io::unicode_script {
namespace {

// RE2 knows which code points belong to a script of Unicode; the numbers are those of ICU's
// UScriptCode, by which TensorFlow's programs know scripts.
struct Script {
  const char* name;
  int32_t code;
};
constexpr Script kScripts[] = {
    {"Common", 0},
    {"Inherited", 1},
    {"Arabic", 2},
    {"Armenian", 3},
    {"Bengali", 4},
    {"Bopomofo", 5},
    {"Cherokee", 6},
    {"Coptic", 7},
    {"Cyrillic", 8},
    {"Deseret", 9},
    {"Devanagari", 10},
    {"Ethiopic", 11},
    {"Georgian", 12},
    {"Gothic", 13},
    {"Greek", 14},
    {"Gujarati", 15},
    {"Gurmukhi", 16},
    {"Han", 17},
    {"Hangul", 18},
    {"Hebrew", 19},
    {"Hiragana", 20},
    {"Kannada", 21},
    {"Katakana", 22},
    {"Khmer", 23},
    {"Lao", 24},
    {"Latin", 25},
    {"Malayalam", 26},
    {"Mongolian", 27},
    {"Myanmar", 28},
    {"Ogham", 29},
    {"Old_Italic", 30},
    {"Oriya", 31},
    {"Runic", 32},
    {"Sinhala", 33},
    {"Syriac", 34},
    {"Tamil", 35},
    {"Telugu", 36},
    {"Thaana", 37},
    {"Thai", 38},
    {"Tibetan", 39},
    {"Canadian_Aboriginal", 40},
    {"Yi", 41},
    {"Tagalog", 42},
    {"Hanunoo", 43},
    {"Buhid", 44},
    {"Tagbanwa", 45},
    {"Braille", 46},
    {"Cypriot", 47},
    {"Limbu", 48},
    {"Linear_B", 49},
    {"Osmanya", 50},
    {"Shavian", 51},
    {"Tai_Le", 52},
    {"Ugaritic", 53},
    {"Buginese", 55},
    {"Glagolitic", 56},
    {"Kharoshthi", 57},
    {"Syloti_Nagri", 58},
    {"New_Tai_Lue", 59},
    {"Tifinagh", 60},
    {"Old_Persian", 61},
    {"Balinese", 62},
    {"Batak", 63},
    {"Brahmi", 65},
    {"Cham", 66},
    {"Egyptian_Hieroglyphs", 71},
    {"Pahawh_Hmong", 75},
    {"Old_Hungarian", 76},
    {"Javanese", 78},
    {"Kayah_Li", 79},
    {"Lepcha", 82},
    {"Linear_A", 83},
    {"Mandaic", 84},
    {"Meroitic_Hieroglyphs", 86},
    {"Nko", 87},
    {"Old_Turkic", 88},
    {"Old_Permic", 89},
    {"Phags_Pa", 90},
    {"Phoenician", 91},
    {"Miao", 92},
    {"Vai", 99},
    {"Cuneiform", 101},
    {"Carian", 104},
    {"Tai_Tham", 106},
    {"Lycian", 107},
    {"Lydian", 108},
    {"Ol_Chiki", 109},
    {"Rejang", 110},
    {"Saurashtra", 111},
    {"SignWriting", 112},
    {"Sundanese", 113},
    {"Meetei_Mayek", 115},
    {"Imperial_Aramaic", 116},
    {"Avestan", 117},
    {"Chakma", 118},
    {"Kaithi", 120},
    {"Manichaean", 121},
    {"Inscriptional_Pahlavi", 122},
    {"Psalter_Pahlavi", 123},
    {"Inscriptional_Parthian", 125},
    {"Samaritan", 126},
    {"Tai_Viet", 127},
    {"Bamum", 130},
    {"Lisu", 131},
    {"Old_South_Arabian", 133},
    {"Bassa_Vah", 134},
    {"Duployan", 135},
    {"Elbasan", 136},
    {"Grantha", 137},
    {"Mende_Kikakui", 140},
    {"Meroitic_Cursive", 141},
    {"Old_North_Arabian", 142},
    {"Nabataean", 143},
    {"Palmyrene", 144},
    {"Khudawadi", 145},
    {"Warang_Citi", 146},
    {"Mro", 149},
    {"Nushu", 150},
    {"Sharada", 151},
    {"Sora_Sompeng", 152},
    {"Takri", 153},
    {"Tangut", 154},
    {"Anatolian_Hieroglyphs", 156},
    {"Khojki", 157},
    {"Tirhuta", 158},
    {"Caucasian_Albanian", 159},
    {"Mahajani", 160},
    {"Ahom", 161},
    {"Hatran", 162},
    {"Modi", 163},
    {"Multani", 164},
    {"Pau_Cin_Hau", 165},
    {"Siddham", 166},
    {"Adlam", 167},
    {"Bhaiksuki", 168},
    {"Marchen", 169},
    {"Newa", 170},
    {"Osage", 171},
    {"Masaram_Gondi", 175},
    {"Soyombo", 176},
    {"Zanabazar_Square", 177},
    {"Dogra", 178},
    {"Gunjala_Gondi", 179},
    {"Makasar", 180},
    {"Medefaidrin", 181},
    {"Hanifi_Rohingya", 182},
    {"Sogdian", 183},
    {"Old_Sogdian", 184},
    {"Elymaic", 185},
    {"Nyiakeng_Puachue_Hmong", 186},
    {"Nandinagari", 187},
    {"Wancho", 188},
    {"Chorasmian", 189},
    {"Dives_Akuru", 190},
    {"Khitan_Small_Script", 191},
    {"Yezidi", 192},
    {"Cypro_Minoan", 193},
    {"Old_Uyghur", 194},
    {"Tangsa", 195},
    {"Toto", 196},
    {"Vithkuqi", 197},
    {"Kawi", 198},
    {"Nag_Mundari", 199},
};
constexpr int32_t kUnknown = 103;     // no script: not assigned
constexpr int32_t kNoCodePoint = -1;  // beyond Unicode

// Thread-safe.
class Scripts {
 public:
  Scripts() : set_(RE2::Options(), RE2::ANCHOR_BOTH) {
    for (const Script& script : kScripts) {
      std::string error;
      // Scripts that the installed RE2 is too old for are left out: their characters are unknown.
      if (set_.Add(absl::StrCat("\\p{", script.name, "}"), &error) >= 0) {
        codes_.push_back(script.code);
      }
    }
    is_good_ = set_.Compile();
  }

  int32_t Of(int32_t code_point) const {
    if (code_point < 0 || code_point > 0x10FFFF) return kNoCodePoint;
    if (!is_good_ || (code_point >= 0xD800 && code_point < 0xE000)) return kUnknown;
    std::vector<int> found;
    if (!set_.Match(Utf8(static_cast<uint32_t>(code_point)), &found) || found.empty()) {
      return kUnknown;
    }
    return codes_[static_cast<size_t>(found[0])];
  }

 private:
  static std::string Utf8(uint32_t c) {
    const auto tail = [](uint32_t bits) { return static_cast<char>(0x80 | (bits & 0x3F)); };
    if (c < 0x80) return {static_cast<char>(c)};
    if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), tail(c)};
    if (c < 0x10000) return {static_cast<char>(0xE0 | c >> 12), tail(c >> 6), tail(c)};
    return {static_cast<char>(0xF0 | c >> 18), tail(c >> 12), tail(c >> 6), tail(c)};
  }

  RE2::Set set_;
  std::vector<int32_t> codes_;
  bool is_good_ = false;
};

class ScriptKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    static const Scripts* const scripts = new Scripts();
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, c.input(0).shape()));
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      out->data<int32_t>()[i] = scripts->Of(c.input(0).data<int32_t>()[i]);
    }
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("UnicodeScript")
                    .Doc("The script of each code point, by ICU's numbers; 103 where it has none, "
                         "-1 beyond Unicode.")
                    .Input("input: int32")
                    .Output("output: int32")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<ScriptKernel>()));
}

}  // namespace weft::ops::io::unicode_script
