// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/random/sobol_table_kernel.h"

namespace weft::ops::random {
namespace {

// Of each dimension from the second on the first numbers, as many as its polynomial has degrees.
// Number i (from 1) is odd and below 2^i: its bits above the lowest stand here, the lower first,
// six of all in a character.
constexpr char kFirst[] =
    "3KgfGAnD90agw77CkgYRC-8oD6LwVtpyjT4bduN9mqYfOTKxVOJgNJO4jX4mbbw4P7Lz2sUiEIYe5fMeX7uxDDFsKiXoV3"
    "c--l_1BjAcyJxw81VjWQvXVWd2oIWPoKvuy5WiSNEovetRktGeUmmHsA7sF49DAg_zgbggcmA7TPzzr0OJG48Sk8Or8-yC"
    "BVq2zHRBMo1FlM-qIDutlFbIqDazS_E5w_in0AP-Ej2GKLxpNItQmTAKAqW688xT0slz2g6ei0vtOyV-1vpsw758r_pEkz"
    "9b7IMKhljU8mOWcLTWdF0YqfYU-gWhzz7ZcsJN5J68mnN99XVOu9qfGR4kfkpBxmo2dr97ZrwFAQfLGRh4_f4oJy7oyq0y"
    "ySEnw000IYityhwO8Udif6yw59k4srDgDrXIn2PWtfVc3vLD3QJcYjvijWZlcj6u_TgIOfZjDN2rBfSH85_joP9pl_3DlC"
    "QiodjLAJt1urkdxqG4Y0uMbz1AVALc_VKvC5RQpWBuJbC51duPYV4lnRIz3MmdkhiJFJ-4ON41lpzz2Qr5oaHEg1iw_ApP"
    "2LfySVhsEn3Z7wCymYf6QMMBUICRjp9ZyPsM209tZb7QSfEgYNtQxwafILbXgapSRvGZZpIOvSXrK-9OdcXQoDX-xHGp-X"
    "BzG0XVvQgSk7C9wXtBpHYGmfhWx05hJ_qRdM7ydp231VNGvQVG2AZ_DKRierVtBG7FXr1y5Z5epR2Pjzoi9brduCjmRaIe"
    "60O61QvTdvruOegjsYLKHfFMlL-fL_6QTRuCW_cV8lBdUhFDeIaC7NEBWzqZJV9B5alaI_1fM-oQIGWPBUncblykXVL2UN"
    "Dv_NNDbMlbZf-QoNRq80asCLQQc-rSa_srAOgpU59-SxZUb_IjXDXZOCVsz6Zt3dGeElnQbwEnRCu7ajyiKZSHN8cX9RHc"
    "D0yXhz2xjfD29SRDREQrESuo5OpWVCbFYkzgW7hebPy8G7a5v1iQSUMGg1uphSlksEx4-NKll_0ZO3EwNW0cnmXoGZEsCP"
    "SFRSC-QuidAXiDAXJnqVzSVirg-uAtfbtt3qcPlimOej_YG3P1grTFeweSdUPbFp0X6hxgV0Ob4kD4uAjoxoIi95n-BPZC"
    "fzdol6GygXs5BcTiLrmHBYmyGiM6Mt60IoSxaLq9zVZpDGCLS7m9Nzsulfsl_aGPa7W7BhFEahoZzRWZr_lXW5C4V7AZBH"
    "IbyzDLK2YS_atr8pIn1EM_PJjCtmOsJScIp2-YOOr5KPa7rbEY5WWfOZ6MKTmDryMNHnIlNT3AvF0r4leKjAbU9ai1K4bO"
    "7erS2uKSXoXOwYVQTjJOfuEBlCzPlUZzc5LalC9rAptLgKZ1e-HEx26w95GOyoBtDGZlWYP1h9P8Vdc3rYjPGsu5bfAOgW"
    "Fckra73muViKzOyEoMrDGZq84XY2ozZjNbCk-LZXXTtKwcmNvlo29HT2vj9TSOPikV_mc8PlRDCQ2N-ygVhHr-kl-Hh6Gc"
    "W_oY9xxXZOX-L--nvXvqdOVCJsIL-RkuJgD-t2j2kYYIrn-qlQhIo2aL5Rx21RfwAIq81uCpqlfP735Htsb_ma-FwVYPqN"
    "zyzVUiNnDLfqDB6FttjOg5bL6v1G5oW50KG1aQXOI3IbUbtlKR4raqdORCGoI03ZIxjUoxqEENn_Zc0YKKlG6v_AHWyYiX"
    "ih3OAkEzdrDRo3N-FSlSKM7C6OgqpQ8T_VknJL8Jo5Yp3jZPNPIgIu8CUOoKTwvFX8ckKnwgh7A3Q2XvrhNCHRfP5Cm9c1"
    "dBSavCXMOzo2-HKlwLV_N-UmETYZ2k_GbddkA4OSm7B6-JDcYeruWcU4X642XhnVIxuG4m_iVHEpZy-Dno9d7KUzkPIB_e"
    "Ud1TbA_WJ4cX1BglKUMCTh_eqoPUc8WTPhwDzCBOTQ1gQvhATs0DK-1LUbUR5DXG9yIgCl1qzcG4A_9qILx5423Qp5n0dg"
    "qt7T25QEaA44GWWgk1il365DNj4ea1E4a9-gARcxhKbxTFijoczjD8tMUuYw8s1gwWE4-h88HZXeIH1uCvW4GYsQ3jPfbh"
    "jSywRgGxhvLWR_NPpSl6ZocSccwPg8oG57vLemP_D6rQzuD0-HY4LrqrtKhk9nGxeV4iXriqmR0oMNStdQya5qYGvwPxxN"
    "DGt0_r7V0-G7g-5CJY62x-vSuT7_-3obJgpd2DoEfR8y4YPuuZQuNdgbQk3hsfkxPBQ_Kkw3S4COoWTV-IO1JBuP-CL17N"
    "p3XlINrrP3-vkjcQpIUbde5inSatm6RzI9aBNtCCd6Z9Z7kCB3-CoQc3O8BsPejKGYUk9vCeHbyoQ4pUxO2imhTCSk-JoA"
    "_oS6VI6oNv2TiPQctjcDNgNdOkt27FQTt4U_yrMzExY8s-Mq9GuSN-88-0kg5YfC_ZXqOM7nZyvNHAb3e8rnKomdw1OZwd"
    "rUXBlhA94oqNsKuK1LUYkLOvU6pqKfHNLmQSvCXv9mxhxHh4LQUkznm7-Odo5H8bTYoLuGJPuyYEFK7lCTpp3YxSLVX9Ne"
    "BsNOTGkz6ML0N7jyqiZySAsPlELYX2zToFSLyIxV0F52CwdhERBQxCxMSRUxAKYWUUVKFfMRmeUjhqRiIJYn8cub4J4WaL"
    "d_F5nCoEN_h_qrW3uhLU6Y_3ZGEvmzq0f97O95kfjO-tUMePvpcMrL_UP-BI96TDFvX0J1zRnShFXOYDrmI2jJeMRa4ZEW"
    "7bu1QCNnVLNNREUli2gIKGqBKuxFGwfOd1Pdzp90O71t4aVPYnPPFaLGKX5LU1upBGL3uk8_AkaHje_3oWyzmLLwUH8ffA"
    "p3GH9TfuJzP7QlGasVcG88iWs4_L7aqAJzZzIRzdJjNc0C-6hh5Fk4996EK1mzQzZfIYbuVW3GahmqIzdkMCevOcSJKloh"
    "7SVpxfQcHPwRlktjsDDf-n-kVTXnrtSWAaPEB-urr4rXcRdJJyMNThbALIf2Mv4_MQI3benE2SVaxoA35AAmD_M3JxDCbF"
    "6vaa5s38lEOldb6rGJjyIcOYs9fK-oO_Bow7vJJzXyraxMjPEy0IKele4z9YHobGR70oVXwIvMKBv3Mj8hhbdP0vrCXjAM"
    "fHfIlN8Df1X56msVOk5FZsUMaLtQRWB6Qq7iHw7nBJ8qNXjzO6Zx3rNo0QBNGIqqiaaaS-KKBA8Xal0V7lsg4DH7RK9-Pe"
    "3CRxhvnd19mOuDMwlMru-03sPadI-sieEVxBIjJDADc4VRrdBXT-0uNeugMrC2MVf-TYvBRcAuZyeKcTRD2gYduUBisKQV"
    "X_XD5AsJs9-BgeVRVeZ8_PdXFdCR2CdQJjnffUz3b79c_Yk3jRUQyHKQjcTqf5naTl4ANNhrAzUVJd94F9UwlyC43Zk8Lh"
    "0k-aiKCtOo-iGZpMX8jUtJwadNrSoGDUsr9IMmJ7N0e5y6BcgTdveGzYAZUEsx6rV1uL8IzsZ7gqzeL65ef_gNSRrVU1oU"
    "PDiTLNjrivspfnXE_hbqRMdDQMqr7UU6QEblZSDE8-WSgthNUZ5N8PDqostVLhFXctEwcmho_9XdL6SBvluNl-1skvFPBh"
    "1CeBmRS7R8xxQKvDYuZBLkMtmIckn_YwQt9tPisLbNCKyoSyp8wFOSxQP51fNGvmKApvDh_vSVMdiUcuEqZxMUehKhR_IE"
    "FSMVEl_bkCgB6FbfZP_p43hu7bfJ9JpBh__HkkRfUB1dMkqXUaNo3UNsedWMu4C7Nn_433D4phXs_q9WUzYtL3XtP356OA"
    "U7foEaTIFRXuGOkSbMIzl8u5iPpV16uZTUcjA5PFOMdo4KRkYn6l5_srqf-Ng8XpmgXX7Nuv0rj4WUAt5qHY6NhDSAI58d"
    "0GdlPWqpZC9hqFGfCQGXSy0R54kEa3vMms0eY1Momc2gMQHJ4W7bO8T5FVE7zq5I5LDDwqehO1gCwAoiG0LlvMWrzxEAxz"
    "9EwfrmcfSufIRw3qgbNjek0pMqidyZS_sY0Yu9e2zGtaywAK8J5QY97LY90ndIDd5DkH84mmp069JXl582LAgrzYJSGXdK"
    "JIjOR9NJS_0Nl6h5cWvH5BSxsEWgrQGYHDOeZRZ0B1mpZxMs2T7-1GYvGCp1rqqoYrNd-TagEce5aTWpB_qoMGujqffAU6"
    "U8Q_g5ZcKj31LJZV-dR-xckr3pxr8U25eTaOwig0Bhb87OraLUSFnitl3-ZL3KnHxX0Xd8b3TltX4934L8R_ByAW332MK6"
    "pqmWycLqvINhugg65XTEbOAg3cW59n6vvJz9YTN_8_KtWQzrHI0JPttVIyWxyymWkqZMcd-QVTuzlBb9a6gg4nGTqchIuM"
    "jQj_BCUAYow78LPxEaNPBuLHACQoH97sy_tk4_LZIurSM1b1baGyy5dX-urHqS8A83-rlp1IP_LTHHgqBA3vnz4JbQsooS"
    "NQwOrmOyTmkXMZUFZJEkQc-EgPzO83AVMSkG3n94uY045tXl7j7I3SKMcTqjS-a8xBuci3LY51Oo2SWrPB5rH235vZzhF1"
    "-MEQdUeATM1WpZXtSC5Shpp2tpuSQ4zqO5FdqJqPXlMoJguUFKIVKEn53nE6VT6c7jrtuUGZ1oGMXrlKzDe-R3SFGYws9e"
    "UcV6mO2HzBgOb8gAUPn8gQKAmshkrHNAe4dgQFz5v5q2rBxeLZ_MFbUT-TNqHYB5-i-LopMAPfVGPl0cZy8v2JgP-wrG_f"
    "orWOmHbPHRx4AdlECOiim3OhOG_1Jzv4ozrgGOionLr2pJckHGU96y6BRUxroZVXn0Fni0WEvURDkeHL9c_wFHg2PIIi3r"
    "-qOMHMGAf-qUhot76LD8fXPRjIQnkyP9o-3K8ONWG1WCSZe-7S1YnCUFfDAIyYgq2hhiYK0QPTmjywaxZfdslqjLjT9NEy"
    "Wl70DTf6T1RraEpjmtGdGzSVSDyaAqN5hX9JTG5SVCXzZTU1Z3H16a-3W9vlsXgxo3CZizeMe4k1Ya23OSzrJAL0CetYMw"
    "is3SGb_cG26ma8tDgyoyRw0gGyCGKM1YWtwkVgYyvDEtKoM3JMDFl5HVSBYesLIX2K9tVQ959_e_riYExjYnwH8ltE5U7W"
    "X5Boq5EFajzmgJ7rq2ricYM053s3ElG76Br3Ez2agTEHwWAx1PNSzTB0UI3bp9O3qui7AjnGIOeg-FVZTn3TM5UQvIcqSk"
    "NMhF9MmykXQNiCnK3L1gsuuZrusf4Cq3sIhkN9oxKjf5Kc_R9mUl98wHQMjBp0xKvwtD5dxxPwe8nRaC1iiG-d4pPg8-OS"
    "HhmzjuvZ8VgpXZhqN2r3RpqDyVRZyPMGrJjVqFq-i-GUpsEzHHKKoeqUafZVvmKuwjmefzZC_DHuHTu7W-o_OFfaYxawRL"
    "55D9aqhcjAdCGobOyVfdL5-7wCoJrCvVw7kZNBKrGBIXHTKCEopq-xEiUti11C0dy1Wt4xM8Bbdr0NnYGNq0ZZX_ih9CiX"
    "RsiZxNDbTSXWilgbaTwM7jl5StuZxmkJvZnKlvz8UXLFj7cLYStavcwYV0d7J_VQ1kMEC_JwU8OCz15aexAWCoV7_53bF1"
    "uAHrjhmAPWgZJxRS7aQV6gZ5jcFqeknuZwVViX9vY83UsuQbSDcRb1TQ8ChKCHHSNZIIta89GL7YzusXbucG9CbgtuCSyq"
    "uC0iiWA-bVIp0pXx2Nbr02KAiqgqS9n2rZIHgJtLMPtchgS19ChPc5d74yeJUeAxnhJHR6uEug3MNxAUZZrI_TvdDuPrsq"
    "Wgd2bVL-psNPznbqolRRWobW_57d3Sx2irgLjgfEtwvUjmgadCj9Vl1o1-PV_1xUAucEoTiSUfTLwwJmlZAHvK6WaUmlnH"
    "n9kyJ-rY7cE6vSIwmH1OMo36Ls77J7-WlapkToCI-frVEzvOUQdnNdOZsHB-FPrIvrkKLYDJFL8Azxjhc9El-sYzujOsk1"
    "TLSaT_Efi_3m1B42CM6oE1tromrSB_oXiUX9nVANdfcZ_BZt3TPaSH5F4QzuIsndr6lbjS1TBm487LdDQFXBYntRyR-Pah"
    "qzDB27kQPWjl1SPx84G_JxKXNDob1l-KTd1CsF6OhO430DdSD0Wg94rghicM6P7F1F6aLqgCIwjBTnPaIpKpX4XKxL21AN"
    "4v27pZdER05CNnYBibJd9vfl0nu7s_PCw-z0oMXk9zMHSz36WM3oZHr5LqhGDu086Pg2fEaswBCvk0r7KlixbMIWKFIWVF"
    "sTlYlg_tGGq1d55IXPTDaAvJuo5BEAMfAYp2AJfRFHzOU7b3kxTfsCk7CslB6bPjT59ZPyz9_Aya25V6VsHyv3meZpkHpC"
    "uvGFIU9muCbmzQk4rSK8M0a0eb4wAUs1KTsLLf4GzfstknA21e7ql2NI8knXsXM91RhjArrkSaH9_zC5xjWetrbur86xzw"
    "PY5WcluGwCrZd-4TmKPEcE28bxwTjW53Zd1U6YZcRkRlv3FxzTF-THYoDhFOTOhqYWX6CV9bfSLSzih3sSp6ODxUcZ2MfU"
    "p5qoOGtXJBB_M8wJdSoNp67W9E_z05Oc4ob00dIjXy8PlgnnGKCzA_ePEphM89NVHz421fgZnvEmkNEGZDA_aZ0ikYBooh"
    "f24QU8PYxnDV7bimCmHIewVsTY2RRqZx6LbgkPMDCKCZHK_zZYpFEGEclcFy4Pg84wBIxBYcAGegDphktAcqEps8OGxbjq"
    "2gXplTNHLwUA3whUXT6cTRkEaXUvi8EZ15MbmEtRUlBCfDA1ECK_F22ZOQ8ZtccOaAKmXa9-92BoAUkWZoxOnjnxOql3yJ"
    "T0oPVThmtZlyv_FGV2JJ45P_j9CVEIsHdlMk0cjou0BEfGCBxMXNtABz7nR_YkAyiXnMDskglypfV7Gp5FKmo1U2HgW6WW"
    "FS2YoW4SFJ8YGgTCNp4s1sC9mQ_hl7W9NrDyqpfng8N6o8V3atzFJjsehwZKj4H_tBWlXa-_Wu1ogWBE7ifuyoJsVVg_9y"
    "78eu6tQs38kHuYBx25kgqW0ZhSU5Qv1Z9bnW3R8TNbDJDUpLGj8t2FJzdtyDJveRXsCawObzq8RK9b-KTSY4W62POSaUM-"
    "VY02gnOZ0IzoXHT73qEb3bkjvLKYmkRGuSqiQLQsUxHeA8AxOCkLVPPxZKzdbqpcLB1_WzOaCB0omwaEILP0sTIr5jyjr6"
    "H4yEBfYJ4cLZ6zmjiObzkWHHpB7LViLrwmBowCbiNCYI0M0Zmakd-OTXbxlaImZmdHOiUazkJuyYOIxJXDhpqkRKTDejus"
    "_DzUXZJBHHp0haqESfUlVlfKy92_BrMitNDkyagDQAefnfrqnOaVGDqhVOTxj6p5zaNbQQWCc-Ba2I0bL74ZPzmaFXUsYG"
    "YxWZedC55Xhq2_MUelC1jAY6KOS4tEZvcPbG7wRloN5uTtW9RraJtS_gdh4JShleqFB0P1g9fo1-AeqMBmSS-zryzlWG22"
    "opc7rS_ct4wsgz3Sv2QJzXlaydZts15Cc3UxphpVKKKCQpbtMW0raBfDUs5X_lv_VdcNqlb601JfAW76kNH1A9bCS-tYN2"
    "_yEs9Z5EAU45YNj6ZrQ81UII2Izz5fywsjtI_Ve4nJgrpkjKBlA0a498q9a6Gk-gJTNfG12o72u4oPlP2sW9mke-sWMOq3"
    "EA25jfGnrVJj6fDA7LbebjibpPF9G4W4M4_E5gdIEnPzOTFa8-EtviB8xOZXnYfS2Car1Bfuk4L6KoDwHkGzy25SMgfoGl"
    "3qB5t9LDB6U_Yzadq2wU23riGXlUQgsMkrWYm1yTtxCWviLk9TmsHdM0RaxCpVVmdD8vCD_m-vOl5LbiyW-PkXSoLyCYDg"
    "pnUZyVoeE77heri2Y3aq93BVsfBKooImSCtlhG1r6i6YTJch1YlUHUHhr7M9YcK_PQcAVQQx89uwBlaZki4Wf8E7oL3oOa"
    "waNVpsCl6eAM_-kakkuBHhjbM0PAQOiTv7BJ9WnF5CoCv5skzB5iWg5tcAtaQCvmN716F1T1n8tjzBcc1qyetK3ebsMjxP"
    "DNN6swMo_ziCctAGx7O27aS8nLqYZ4-ppztKm4HuBmhCtZGILawsq7Q-6fhk_mYcaq9-oZrrYdtuCLAyEW0i0FjzuT9NqV"
    "ZeUSJ1mLEiidJiEjadkT4mL3n6ZJmwEd2nzOfczF5ZXebCNuNKq-GdCT0pt4rekADxxxCFCgM6FeWVWmv-INfU3ch2qwIX"
    "nKl1TV3AZkTBCY6qr-r-qirszI-JRJHSuXx_CnXip57ix9-vHf4Wj26qAASRB6lCts4eQwbBFrSTtQnaSGKVbSecuVnol7"
    "KOl4kLTYOi5wpKOQuzCMKSzFU4ct5KQOG_kcUQZbr2qXfR0Nw88SncQYbLjAZh-50Sn82fjayMlOsqSye-X0OZZzwMhHq1"
    "mECTXLf-zoY7G7QjcRy1z2yUtNUdU0RBVEM2PSXt0mqs_PY3u9mOaBOl4FyBi3cspDehzql6OPz3_AoXyycWhiUe3W8FiL"
    "KizxzJ6SeEJw3BNk9DGNu49AxlAXtcdvESytDAmvi9vcurmgMCio3nUSmUSTlJcAXHX2P4w2yEEkyYQVJTNf6RrAvOen8O"
    "snQBiPMFOZMNM1Slj9LQu_DHGpCOLmcn34USdcrRhYxlvQB5Jox6dOnT6mt5ThPL_GQvmUlzBLyfFGvwRnNI78brLnpsdp"
    "IlirF8Fl-ksCIdd11_pe3M7sGoNP5EMtxoHNxGjoQky8tPhVCkX6f2JPD9B9bSdkVeD8wa-s_tANzR7i1nwoB8H3TnnsBx"
    "GROyrCGUfqva0hCvJC4PMaBupLrsKjg6Be_4Ea6wCI6gLgf7aNNIn9RKRaF4tHK-gT9BIRg4TvAoKjyqg4a8dr8aQzjdVj"
    "q1bq-4fhFLZIBwRmss_FvLCSgVad_oOvSTVq8Dy5txSZ_cnzVUOv_xCaLyutPhDV9-ZW1TREmUM3t-kRIuowBQ3eW7eMsG"
    "uY0Vuo8JVvoQ3brP8Kw1dpMzcM6nJluO1qZKqUCGO-gd7WzMMTnutdVc76xdZJXuX6Dxb8MMRuxh2So4znVd44pKiwQ1tR"
    "5PPd45yd7dOD-WNBj11gzkyhUiroNz3CeTF83mUgMf2J9UgxNgWKIESlTACKRvWaLzeF6JoQ8OA2yoW2oyS5NsLAR8086d"
    "a_Le-s_fNWYcRTleWVoPb8kGVbbwI18iuvL-Yjok8A55E53IucW-a6EaiekXDcPikHLYzRiI23ntwVRJobhQycOZIImuJt"
    "Z6_q7uB8NO6mTPLPwij9OyegUxP5q_Ems2Qk7S3DQeTtyjhVB60EfBzzq7bMcXKtcY0jYM_QcGeyOISTSQbHimINpjOgCF"
    "qa4od6rMr60XXpxVyjYh1QbuFC1LyaDPmXjAZLBebXsxnxWqaF7coSIEWhq-hYwHpVedHgp3CzSduwdlLkOxwUHA8hIi1h"
    "pwnu7ACPoE14f-3poWk5yi-r2eGi-CU2X0ZO_2MIt6T3wL29Pbdls8vTU5-DJAfBsXZ2rv5M5_MVQrH8pT3NGBox2RyYxe"
    "Q2mnkWm3Axxo46j0QpkfyYVdFqN9ZUSbKCW9UgZu7ihlYVv8v0Fqj0Vt6Im9_jw6iko8z1y1SyMhLkWH2DSSjG93LzVXIn"
    "fa7q1MH9j4xhslqhbAziwjid703vGYuCWn0GeJuF3ojXWEFMP8SIQ-JY5dXMjJGr0EJOg5UyOV0Zqs2Wt3AK8z7_pivm6w"
    "fQCZ303ICXISBv6rUHLtHFDB3fO9QJnJf1UzhHfv1oyneKMbNQvBbCbY6wip8QKCNMRofVVDyjigK5Hbcw0h7aLgkW8gXU"
    "IgIgJZB8FccFPmDZec9Q_AXiHM-fKY_Q3EXZj_nUivo3itHSxjrSmg338dYJVnje8i2nYQJDnjUhnXa5XSc5puKl40KaPf"
    "Sr5VorQTq87_RQDScawYdNNS7m-Sjq4GpSW1aTQKFS2wqg_WiwPVyRfULK1gl0gZxTJndk7bwDYEqZ1KUzd6uRSEHgVS4L"
    "_sTsqxP06lhVCqwpBOKVsvPW7FypXB5id8o0Z3-SjZc8ixWB-eNXTMHEPuinjpvvXHHmqHQJAAk0wC1RkQS1t1hxxNj_kH"
    "DYEnm6JSivpymbTd0yezZxnqvvtXRODk1lstDY8rwO-D0MkY9BW7pUS8jn0vuibIAMUuCFUS5GGmk3jnKAHH7kZHjisrOl"
    "9zt9aWYwtt3ALW0YTItvfrmLiwkUO7DJxHGjQRI2IdMRcIumF-0kieTLljDtFLrjcmAhCDCu8Edh0Q9xM1xf6-CQ-rEfUF"
    "mOf5LPnicfhCITCOn10ZSwV55CCrC5FVRgJ_zAfXYwum0Y82WO4H2SDuFANsHJmMNR89O1qgH8iudBddKCLx_z5wCiuSq8"
    "oazskHxBlvCau9qNnvweKYX_Az0gJ1m4cneOvPCLcpA1Mm_69q1bOBMpdjoGfdXzXhv2YsrXfIWYsZ5vyAX0qCnpvRH_xH"
    "imnW2iIxS-XKxMpJesV6Z-_UIM-U8u1fmidDJBovg7IHgT_0gQ44s1-WkyQhUdzdRZvAjvWDDWIxZtikaIfhBLZf9fIKyq"
    "LGBSfOqXgXyUQfgqbQVFquTB2mGO52ZK9p1tX1w1Mcd8WtnXeERWv37_4EBspKWIPPWcj-LrLkdNmUNbNTAHmYzQOjO9PB"
    "RNGd1AveWVYK3_tfHSilOOg9loeTO7DM3qcnzUlEis5J8AvAToDQmfRXmqZNuKj9GHfYoH4cV8Y2ozdhyEAFJ8kkxdGW3G"
    "FMjWmi4oUZ9QRIb9TS6ajLkhHfMXK01YBsgfCPgEVJ3b0b3kIfnR1ht8-slJUatu4ryjNaBGd6IQhuM1X-UC4g9rkTBWRC"
    "HjPni3660ojRsLk5qIFBYiiD15Z0DPTjzoTdudpjgHCIY2iWlXNV4Y8MmlWX9ZK2X2BGFc7kPG0LtBpxwGuViCWg1ZY3sH"
    "3j6lJXGHnTUni60EENYpTe541sG6hBVvSRydIl_uA3egYBojp4wdy6xOIyDGAIbpsW0zG3ei-N92Tc_ceeXkqdcB5goJPG"
    "itlsDu_emBDWKpN6W2PLS3XVm1bgyPh2UrIPaA4VKH57mvVX3nDlx5igWSrHWbeD8QenH-sZ_noXXHYc3vwLq5of9QEcnF"
    "EjAJmRYXQQtUfRnwSZ1FQZjjaSQ-jnThWjJDtH4TC_oAE9BoiIaXxLHPBeaZ1xFIPj-vdVcq51VvKNHX60UlLk4lZuJxe3"
    "R-GXrJ39LM53xDThHeZnYXounYShCVSr9EqLI51Fjvsq5II871b8rRTHJdqPW0Uz7pkR6W0RvkXOrcRWRR5Qxe3Oji25hy"
    "sYdLqncitNKTiSfA5ha9-b4TMWKcU3iYAqHePsYFsTPwsHnge00nuV5ANw41dKfNdjpQBl4DKOI4dZS0RL3T5aIVxlqLsB"
    "9uVs6kbcxIgKSTlWuw9BL_E0ND-wtkRJHsu0Q3N88sKPbRNz3sqEV-3XiJ3JSesXjowNze0rgNSG10arl-Cgm_1MBkGpbN"
    "uSSIMm--uSUZjX413WauJ7jRc48BLxY990-ES2VFco8g35ph3ehAuLmJFUuTu8GkxFSJdBoGvkROssXjSDppUGJxGwrtdR"
    "X9Ya5DUnzKS636zCJCBoM4KaDnTTC4CGYurzk5CwC9XrmSqYIZjZ41oe8ECZcsnSt3eNlHHzhS8ukSbbFQ3R9D0ICIFjdF"
    "vOF7nGE5eeTN9M1WoWLeU-khA6iyyy_0t_4LwDmJUHVl-D9-RkaizogYQiG_gWIc4BiVyCbGLHwwB00RZbz7p2JoaEQdWp"
    "xhiXkZwCKOy_jl2WfDhOduaiSJxCtdbWByEy8TB71RGKCwTRCLgLtwyTNy6fb2sREpuuqATOaD_0oLa-6bQX-bLMmP6fZ6"
    "j5x9S8YvXAgSwoPCANBK_Ax-gP8Izb3GtjAlQZTdyDiqcz4hAYK7gRM7-kpldfGeL1qtU9LdpFjiOzG_nzqmILCqy7uWwS"
    "V7azyR_D6Oq3Q_SLtFlzhsaN5mEbi4B9C1OIPf_OqGiHeLgBDxIL9HDsmU1JC2kx6j2zXrP_jRfoWClZVzsr_BKwrVVevk"
    "oPKEerLaGAQ92BO3upcsZogAoL9NA2yj7f8YlSZ-iJrCidARjx_8rAzPzgrKsLoHKJ1wkze2dQ1acJZSWidAWVK9oEZAjw"
    "4E4wwVWguQGFiqdbLZmI0MVeCcg0Y3He9o3OgUHGc_wuq36fFPiIr7xLJn98B4duLWR5PB3q0z2SUqc_Cwcf4ZW_nZUgPZ"
    "IEiTzJPKV4iHkwP8RPGmjZFg1LAqKb5QSYqDukJLIrbKOIwGWrXLJaXc7ouJmGQdQPoKhkO0";

// The value of a character of kFirst.
uint32_t Bits(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0');
  if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A') + 10;
  if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a') + 36;
  return c == '-' ? 62 : 63;
}

class FirstNumbers {
 public:
  uint32_t Next(int i) {
    uint32_t number = 1;
    for (int bit = 1; bit < i; ++bit, ++at_) {
      number |= (Bits(kFirst[at_ / 6]) >> (at_ % 6) & 1) << bit;
    }
    return number;
  }

 private:
  size_t at_ = 0;
};

// Whether powers of x go through all remainders of the polynomial but 0.
bool IsPrimitive(uint32_t polynomial, int degree) {
  const uint32_t all = (1u << degree) - 1;
  uint32_t power = 1;
  for (uint32_t steps = 1; steps <= all; ++steps) {
    power <<= 1;
    if ((power >> degree) != 0) power ^= polynomial;
    if (power == 1) return steps == all;
  }
  return false;
}

// The numbers of a dimension: those behind the first follow from them by its polynomial.
std::array<uint32_t, 32> NumbersOf(uint32_t polynomial, int degree, FirstNumbers* first) {
  std::array<uint32_t, 32> numbers;
  for (int k = 0; k < 32; ++k) {
    if (k < degree) {
      numbers[static_cast<size_t>(k)] = first->Next(k + 1);
      continue;
    }
    const uint32_t oldest = numbers[static_cast<size_t>(k - degree)];
    uint32_t number = oldest;
    for (int i = 1; i <= degree; ++i) {
      if ((polynomial >> (degree - i) & 1) != 0) number ^= numbers[static_cast<size_t>(k - i)] << i;
    }
    numbers[static_cast<size_t>(k)] = number;
  }
  return numbers;
}

std::vector<std::array<uint32_t, 32>> Make() {
  std::vector<std::array<uint32_t, 32>> directions;
  directions.emplace_back().fill(1);
  FirstNumbers first;
  for (int degree = 1; directions.size() < kSobolDimensions; ++degree) {
    for (uint32_t inner = 0; inner < 1u << (degree - 1); ++inner) {
      const uint32_t polynomial = 1u << degree | inner << 1 | 1;
      if (!IsPrimitive(polynomial, degree)) continue;
      directions.push_back(NumbersOf(polynomial, degree, &first));
    }
  }
  for (std::array<uint32_t, 32>& numbers : directions) {
    for (size_t k = 0; k < 32; ++k) numbers[k] <<= 31 - k;
  }
  return directions;
}

}  // namespace

const std::vector<std::array<uint32_t, 32>>& SobolDirections() {
  static const auto* const directions = new std::vector<std::array<uint32_t, 32>>(Make());
  return *directions;
}

}  // namespace weft::ops::random
